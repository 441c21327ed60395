"""CreateTopics, topic by topic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.decision import PARTITIONS_PER_REQUEST_MAX, Decision
from barnabas.metadata.topics import create_topics
from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID
from barnabas.wire.message import encode
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Topic = CreateTopicsRequest.CreatableTopic
Assignment = CreateTopicsRequest.CreatableReplicaAssignment
Config = CreateTopicsRequest.CreatableTopicConfig


def wanted(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> Any:
    return Topic(name=name, num_partitions=partitions, replication_factor=factor, **more)


def by_hand(name: str, *replicas: list[int], first: int = 0) -> Any:
    assignments = [Assignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas, first)]
    return wanted(name, -1, -1, assignments=assignments)


def create(cluster: Any, *topics: Any, facts: Any = None, **more: Any) -> Decision[CreateTopicsResponse]:
    validate_only = more.pop("validate_only", False)
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    decision = create_topics(
        cluster.image, request, facts or cluster.facts, topic_ids=cluster.topic_ids, seed=1, **more
    )
    for version in CreateTopicsResponse.versions:
        encode(decision.response, version)
    return decision


def test_a_topic_is_created_as_asked(cluster: Any) -> None:
    decision = create(
        cluster,
        wanted(
            "orders",
            4,
            3,
            configs=[Config(name="retention.ms", value="5"), Config(name="cleanup.policy", value="compact")],
        ),
    )
    (result,) = decision.response.topics
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert (result.num_partitions, result.replication_factor) == (4, 3)
    assert result.topic_id != ZERO_UUID
    kinds = [type(record) for record in decision.records]
    assert kinds == [r.TopicRecord, r.ConfigRecord, r.ConfigRecord, *[r.PartitionRecord] * 4]
    cluster.decided(decision)
    topic = cluster.image.topic("orders")
    assert len(topic.partitions) == 4
    assert cluster.image.configs.of_topic("orders")["retention.ms"] == "5"
    for partition in topic.partitions:
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert partition.directories == tuple(cluster.directory(replica) for replica in partition.replicas)
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_the_answer_carries_every_setting_and_its_source(cluster: Any) -> None:
    cluster.apply(r.ConfigRecord(resource_type=4, resource_name="", name="message.max.bytes", value="99"))
    cluster.apply(r.ConfigRecord(resource_type=4, resource_name="0", name="log.flush.interval.messages", value="3"))
    schema = replace(cluster.facts.schema, static={"log.retention.hours": "2", "log.roll.ms": "17"})
    decision = create(
        cluster,
        wanted("t", configs=[Config(name="segment.bytes", value="2000000")]),
        facts=replace(cluster.facts, schema=schema),
    )
    configs = decision.response.topics[0].configs
    assert configs is not None
    assert [config.name for config in configs] == sorted(setting.name for setting in schema.topic_settings)
    found = {config.name: (config.value, config.config_source) for config in configs}
    assert found["segment.bytes"] == ("2000000", 1)
    assert found["flush.messages"] == ("3", 2)
    assert found["max.message.bytes"] == ("99", 3)
    assert found["retention.ms"] == (str(2 * 3600 * 1000), 4)
    assert found["segment.ms"] == ("17", 4)
    assert found["cleanup.policy"] == ("delete", 5)


def test_who_may_not_see_configurations_is_told_so(cluster: Any) -> None:
    result = create(cluster, wanted("t", 2), describable=()).response.topics[0]
    assert result.topic_config_error_code == errors.TOPIC_AUTHORIZATION_FAILED.code
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, -1, -1)


def test_minus_one_stands_for_the_defaults(cluster: Any) -> None:
    result = create(cluster, wanted("t", -1, -1)).response.topics[0]
    assert (result.num_partitions, result.replication_factor) == (3, 2)


def test_validating_only_answers_the_same_and_writes_nothing(cluster: Any) -> None:
    decision = create(cluster, wanted("t", 2, 2), wanted("", 1, 1), validate_only=True)
    assert decision.records == []
    assert [result.error_code for result in decision.response.topics] == [0, errors.INVALID_TOPIC_EXCEPTION.code]
    assert decision.response.topics[0].num_partitions == 2


def test_a_topic_can_be_placed_by_hand(cluster: Any) -> None:
    cluster.decided(create(cluster, by_hand("t", [2, 0], [1, 2])))
    assert [partition.replicas for partition in cluster.image.topic("t").partitions] == [(2, 0), (1, 2)]
    assert cluster.partition("t", 1).leader == 1


def test_a_fenced_replica_starts_out_of_sync(cluster: Any) -> None:
    cluster.apply(r.FenceBrokerRecord(id=2, epoch=102))
    cluster.decided(create(cluster, by_hand("t", [2, 0])))
    partition = cluster.partition("t")
    assert (partition.isr, partition.leader, partition.replicas) == ((0,), 0, (2, 0))


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (wanted("."), errors.INVALID_TOPIC_EXCEPTION),
        (wanted("a b"), errors.INVALID_TOPIC_EXCEPTION),
        (wanted("x" * 250), errors.INVALID_TOPIC_EXCEPTION),
        (wanted("there"), errors.TOPIC_ALREADY_EXISTS),
        (wanted("a_b"), errors.INVALID_TOPIC_EXCEPTION),
        (wanted("__cluster_metadata"), errors.INVALID_REQUEST),
        (wanted("t", 0), errors.INVALID_PARTITIONS),
        (wanted("t", -2), errors.INVALID_PARTITIONS),
        (wanted("t", 1, 0), errors.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, -2), errors.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, 4), errors.INVALID_REPLICATION_FACTOR),
        (wanted("t", 1, 1, assignments=[Assignment(partition_index=0, broker_ids=[0])]), errors.INVALID_REQUEST),
        (wanted("t", 1, -1, assignments=[Assignment(partition_index=0, broker_ids=[0])]), errors.INVALID_REQUEST),
        (by_hand("t", [0], [0, 1]), errors.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [9]), errors.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [0, 0]), errors.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", []), errors.INVALID_REPLICA_ASSIGNMENT),
        (by_hand("t", [0], first=1), errors.INVALID_REPLICA_ASSIGNMENT),
        (
            wanted("t", -1, -1, assignments=[Assignment(partition_index=0, broker_ids=[0])] * 2),
            errors.INVALID_REPLICA_ASSIGNMENT,
        ),
        (wanted("t", configs=[Config(name="retention.ms", value=None)]), errors.INVALID_CONFIG),
        (wanted("t", configs=[Config(name="no.such", value="1")]), errors.INVALID_CONFIG),
        (wanted("t", configs=[Config(name="retention.ms", value="soon")]), errors.INVALID_CONFIG),
        (wanted("t", configs=[Config(name="cleanup.policy", value="burn")]), errors.INVALID_CONFIG),
        (wanted("t", configs=[Config(name="segment.bytes", value="1")]), errors.INVALID_CONFIG),
        (
            wanted(
                "t",
                configs=[
                    Config(name="min.compaction.lag.ms", value="9"),
                    Config(name="max.compaction.lag.ms", value="8"),
                ],
            ),
            errors.INVALID_CONFIG,
        ),
    ],
)
def test_what_is_wrong_with_a_topic_is_said_and_harms_no_other(cluster: Any, topic: Any, error: Any) -> None:
    cluster.create("there", [0])
    cluster.create("a.b", [0])
    decision = create(cluster, topic, wanted("fine"))
    refused, fine = decision.response.topics
    assert refused.error_code == error.code
    assert refused.error_message
    assert fine.error_code == 0
    cluster.decided(decision)
    assert cluster.image.topic("fine") is not None
    assert len(cluster.image.topics) == 3


def test_a_name_given_twice_is_refused_once(cluster: Any) -> None:
    decision = create(cluster, wanted("t"), wanted("t"), wanted("u"))
    answers = {result.name: result.error_code for result in decision.response.topics}
    assert answers == {"t": errors.INVALID_REQUEST.code, "u": 0}
    assert len(decision.response.topics) == 2


def test_brokers_that_are_all_fenced_cannot_hold_a_topic(cluster: Any) -> None:
    for broker in range(3):
        cluster.apply(r.FenceBrokerRecord(id=broker, epoch=100 + broker))
    placed, manual = create(cluster, wanted("a"), by_hand("b", [0])).response.topics
    assert placed.error_code == errors.INVALID_REPLICATION_FACTOR.code
    assert manual.error_code == errors.INVALID_REPLICA_ASSIGNMENT.code


def test_a_cordoned_broker_gets_no_replicas(cluster: Any) -> None:
    cluster.apply(
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, cordoned_log_dirs=[cluster.directory(1)])
    )
    cluster.decided(create(cluster, wanted("t", 20, 2)))
    assert {replica for p in cluster.image.topic("t").partitions for replica in p.replicas} == {0, 2}


def test_a_request_for_too_many_partitions_is_refused_before_they_are_made(cluster: Any) -> None:
    decision = create(cluster, wanted("a", PARTITIONS_PER_REQUEST_MAX), wanted("b", 2**31 - 1))
    assert {result.error_code for result in decision.response.topics} == {errors.POLICY_VIOLATION.code}
    assert decision.records == []
    # So large that with the topic itself they do not fit in one batch.
    assert create(cluster, wanted("a", PARTITIONS_PER_REQUEST_MAX)).response.topics[0].error_code == (
        errors.POLICY_VIOLATION.code
    )
    assert create(cluster, wanted("a", PARTITIONS_PER_REQUEST_MAX - 1)).response.topics[0].error_code == 0


def test_the_default_schema_knows_every_topic_setting() -> None:
    assert "retention.ms" in ConfigSchema().topic_settings
