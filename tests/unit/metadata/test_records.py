"""The frame of metadata records, and what is refused."""

from __future__ import annotations

import pytest

from barnabas.metadata import records as r
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message

ID = Uuid(bytes(range(16)))


@pytest.mark.parametrize("record_type", r.RECORD_TYPES.values(), ids=lambda cls: cls.__name__)
def test_every_type_round_trips_in_its_newest_version(record_type: type[Message]) -> None:
    record = record_type()
    value = r.encode_record(record)
    assert value[0] == 1
    assert r.RECORD_TYPES[value[1]] is record_type
    assert value[2] == record_type.versions[-1]
    assert r.decode_record(value) == record


def test_a_full_partition_change_round_trips() -> None:
    record = r.PartitionChangeRecord(
        partition_id=3,
        topic_id=ID,
        isr=[],
        leader=-1,
        replicas=[1, 2],
        removing_replicas=[3],
        adding_replicas=[],
        leader_recovery_state=1,
        directories=[ID, ID],
        eligible_leader_replicas=[2],
        last_known_elr=[1],
    )
    assert r.decode_record(r.encode_record(record)) == record


def test_an_unchanged_field_takes_no_space() -> None:
    assert len(r.encode_record(r.PartitionChangeRecord(partition_id=0, topic_id=ID))) == 3 + 4 + 16 + 1


def test_a_log_of_an_older_cluster_can_be_read() -> None:
    value = bytes((1, 17, 0)) + r.encode_record(r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2))[3:]
    record = r.decode_record(value)
    assert isinstance(record, r.BrokerRegistrationChangeRecord)
    assert record.cordoned_log_dirs is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x00",
        b"\x02\x14\x00\x00",  # a frame from the future
        b"\x01\x06\x00\x00",  # a type that never was
        b"\x01\x1d\x00\x00",  # a type from the future
        b"\x01\x14\x01\x00",  # a version from the future
        b"\x01\x14\x00",  # cut off
        b"\x01\x14\x00\x00\x00",  # too long
        b"\x01\xff\xff\xff\xff\xff\xff\xff",
    ],
)
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(Malformed):
        r.decode_record(value)
