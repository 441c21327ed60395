"""CreatePartitions."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.partitions import create_partitions
from barnabas.model import errors
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest

Topic = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = CreatePartitionsRequest.CreatePartitionsAssignment


def wanted(name: str, count: int, *replicas: list[int]) -> Any:
    assignments = [Assignment(broker_ids=ids) for ids in replicas]
    return Topic(name=name, count=count, assignments=assignments or None)


def grow(cluster: Any, *topics: Any, validate_only: bool = False) -> dict[str, int]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    decision = create_partitions(cluster.image, request, seed=3)
    cluster.decided(decision)
    return {result.name: result.error_code for result in decision.response.results}


def test_a_topic_grows_and_keeps_its_replication_factor(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    assert grow(cluster, wanted("t", 5)) == {"t": 0}
    partitions = cluster.image.topic("t").partitions
    assert len(partitions) == 5
    assert {len(partition.replicas) for partition in partitions} == {2}


def test_partitions_can_be_placed_by_hand(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    assert grow(cluster, wanted("t", 3, [2, 1], [1, 0])) == {"t": 0}
    assert [partition.replicas for partition in cluster.image.topic("t").partitions] == [(0, 1), (2, 1), (1, 0)]


def test_validating_only_writes_nothing(cluster: Any) -> None:
    cluster.create("t", [0])
    assert grow(cluster, wanted("t", 2), validate_only=True) == {"t": 0}
    assert len(cluster.image.topic("t").partitions) == 1


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (wanted("none", 2), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted("t", 2), errors.INVALID_PARTITIONS),
        (wanted("t", 1), errors.INVALID_PARTITIONS),
        (wanted("t", -1), errors.INVALID_PARTITIONS),
        (wanted("t", 4, [0, 1]), errors.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", 3, [0]), errors.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", 3, [0, 7]), errors.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", 3, [1, 1]), errors.INVALID_REPLICA_ASSIGNMENT),
        (wanted("t", 2**31 - 1), errors.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_is_refused_and_harms_no_other(cluster: Any, topic: Any, error: Any) -> None:
    cluster.create("t", [0, 1], [1, 0])
    cluster.create("other", [0])
    assert grow(cluster, topic, wanted("other", 2)) == {topic.name: error.code, "other": 0}
    assert len(cluster.image.topic("t").partitions) == 2


def test_a_name_given_twice_is_refused(cluster: Any) -> None:
    cluster.create("t", [0])
    assert grow(cluster, wanted("t", 2), wanted("t", 3)) == {"t": errors.INVALID_REQUEST.code}


def test_fenced_brokers_lead_no_new_partitions(cluster: Any) -> None:
    cluster.create("t", [0])
    for broker in range(3):
        cluster.apply(r.FenceBrokerRecord(id=broker, epoch=100 + broker))
    assert grow(cluster, wanted("t", 2)) == {"t": errors.INVALID_REPLICATION_FACTOR.code}
    assert grow(cluster, wanted("t", 2, [1])) == {"t": errors.INVALID_REPLICA_ASSIGNMENT.code}
