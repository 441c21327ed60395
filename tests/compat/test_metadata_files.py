"""Kafka's reader of the metadata log reads ours: every kind of record, in the log and in a snapshot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka_tools import dump_log_segments

from barnabas.metadata import records as r
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.wire.message import Message
from barnabas.wire.records import encode_batch

ID = Uuid(bytes(range(16)))
RECORDS: list[Message] = [
    *bootstrap_records(),
    r.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=ID,
        broker_epoch=8,
        end_points=[r.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=65535)],
        features=[r.RegisterBrokerRecord.BrokerFeature(name="metadata.version", max_supported_version=30)],
        rack=None,
        log_dirs=[ID],
        cordoned_log_dirs=[],
    ),
    r.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=8, fenced=-1, in_controlled_shutdown=1, log_dirs=[ID], cordoned_log_dirs=[ID]
    ),
    r.TopicRecord(name="topic", topic_id=ID),
    r.PartitionRecord(
        partition_id=0,
        topic_id=ID,
        replicas=[1, 2],
        isr=[1],
        leader=1,
        leader_recovery_state=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[ID, ID],
        eligible_leader_replicas=[2],
        last_known_elr=[2],
    ),
    r.PartitionChangeRecord(
        partition_id=0,
        topic_id=ID,
        isr=[],
        leader=-1,
        replicas=[1],
        removing_replicas=[],
        adding_replicas=[3],
        leader_recovery_state=0,
        directories=[ID],
        eligible_leader_replicas=[1],
        last_known_elr=[1],
    ),
    r.ConfigRecord(resource_type=2, resource_name="topic", name="retention.ms", value=None),
    r.ClientQuotaRecord(
        entity=[r.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)], key="k", value=1.5
    ),
    r.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096),
    r.AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="*", pattern_type=3, principal="User:x", host="*", operation=2
    ),
    r.RegisterControllerRecord(
        controller_id=9,
        incarnation_id=ID,
        end_points=[r.RegisterControllerRecord.ControllerEndpoint(name="C", host="h", port=1)],
        features=[r.RegisterControllerRecord.ControllerFeature(name="kraft.version", max_supported_version=1)],
    ),
    r.DelegationTokenRecord(owner="User:o", requester="User:r", renewers=["User:n"], token_id="t"),
    *(kind() for kind in r.RECORD_TYPES.values()),
]


@pytest.mark.java
def test_kafka_reads_every_record(tmp_path: Path) -> None:
    directory = tmp_path / f"{METADATA_TOPIC}-0"
    directory.mkdir()
    segment = directory / "00000000000000000000.log"
    rows = [(1000, None, r.encode_record(record), ()) for record in RECORDS]
    segment.write_bytes(encode_batch(rows, leader_epoch=1))
    code, text = dump_log_segments([segment], "--cluster-metadata-decoder")
    assert code == 0, text
    assert "isvalid: true" in text
    types = re.findall(r'"type":"([A-Z_]+)_RECORD","version":(\d+)', text)
    assert len(types) == len(RECORDS), text
    assert [name.replace("_", "").lower() + "record" for name, _ in types] == [
        type(record).__name__.lower() for record in RECORDS
    ]
    assert [int(version) for _, version in types] == [record.versions[-1] for record in RECORDS]
    assert '"eligibleLeaderReplicas":[2],"lastKnownElr":[2]' in text
    assert '"cordonedLogDirs":["AAECAwQFBgcICQoLDA0ODw"]' in text
    assert '"port":65535' in text
