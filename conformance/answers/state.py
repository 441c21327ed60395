"""The state that both brokers are brought into before the judge asks: topics with records, a group with offsets."""

from __future__ import annotations

import time
from typing import Any

from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records import encode_batch
from conformance.answers.cases import COMPACTED, GROUP, TOPIC, TRANSACTION
from conformance.answers.exchange import Exchange

RECORDS = 5
SECONDS_MAX = 60.0
GROUP_KEY, TRANSACTION_KEY = 0, 1
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def settings_for(port: int, sasl_port: int, controller_port: int | None) -> dict[str, str]:
    """Listeners for a super user without authentication and for users with a password; ACLs are checked."""
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    settings = {
        "advertised.listeners": listeners,
        "listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} user_nobody="nobody-secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
    }
    if controller_port is not None:
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{controller_port}"
        settings["listener.security.protocol.map"] = (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        )
    return settings


def prepare(admin: Exchange) -> None:
    topic = CreateTopicsRequest.CreatableTopic
    config = CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact")
    topics = [
        topic(name=TOPIC, num_partitions=3, replication_factor=1),
        topic(name=COMPACTED, num_partitions=1, replication_factor=1, configs=[config]),
    ]
    admin.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    _until_coordinated(admin, GROUP, GROUP_KEY)
    _until_coordinated(admin, TRANSACTION, TRANSACTION_KEY)
    batch = bytes(encode_batch([(1_700_000_000_000 + each, b"k", b"v", ()) for each in range(RECORDS)]))
    data = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index in range(3)]
    rows = [ProduceRequest.TopicProduceData(name=TOPIC, partition_data=data)]
    _until(lambda: admin.ask(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=rows), 9), _is_produced)
    part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    commit = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
    )
    _until(lambda: admin.ask(commit, 8), lambda answer: answer.topics[0].partitions[0].error_code == 0)


def _is_produced(answer: Any) -> bool:
    return all(row.error_code == 0 for row in answer.responses[0].partition_responses)


def _until_coordinated(admin: Exchange, key: str, kind: int) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    _until(lambda: admin.ask(request, 4), lambda answer: answer.coordinators[0].error_code == 0)


def _until(ask: Any, is_good: Any) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_good(ask()):
        if time.monotonic() > deadline:
            raise TimeoutError("a broker did not get into the state that the judge needs")
        time.sleep(0.1)
