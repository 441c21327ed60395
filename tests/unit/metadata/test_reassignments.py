"""Partitions move: new replicas beside the old ones first, the old ones gone when the new ones are in sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.metadata.alter_partition import alter_partition
from barnabas.metadata.reassignments import alter_partition_reassignments, list_partition_reassignments
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.model import errors
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

Asked = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


@pytest.fixture
def five(make_cluster: Callable[[int], Any]) -> Any:
    return make_cluster(5)


def move(cluster: Any, replicas: list[int] | None, *, name: str = "t", index: int = 0, may_resize: bool = True) -> Any:
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_resize,
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=name,
                partitions=[
                    AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=index, replicas=replicas)
                ],
            )
        ],
    )
    decision = alter_partition_reassignments(cluster.image, request, cluster.facts)
    cluster.decided(decision)
    return decision.response.responses[0].partitions[0]


def moving(cluster: Any, topics: list[Any] | None = None) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    response = list_partition_reassignments(cluster.image, ListPartitionReassignmentsRequest(topics=topics))
    return [
        (topic.name, row.partition_index, row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in response.topics
        for row in topic.partitions
    ]


def in_sync(cluster: Any, isr: list[int]) -> Any:
    partition = cluster.partition("t")
    request = AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=100 + partition.leader,
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=cluster.image.topic("t").id,
                partitions=[
                    AlterPartitionRequest.PartitionData(
                        partition_index=0,
                        leader_epoch=partition.leader_epoch,
                        partition_epoch=partition.partition_epoch,
                        new_isr_with_epochs=[
                            AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=100 + broker)
                            for broker in isr
                        ],
                    )
                ],
            )
        ],
    )
    decision = alter_partition(cluster.image, request, cluster.facts)
    cluster.decided(decision)
    return decision.response.topics[0].partitions[0]


def test_a_move_keeps_the_old_replicas_until_the_new_ones_are_in_sync(five: Any) -> None:
    five.create("t", [0, 1, 2])
    assert move(five, [0, 3, 4]).error_code == 0
    partition = five.partition("t")
    assert (partition.replicas, partition.adding, partition.removing) == ((0, 3, 4, 1, 2), (3, 4), (1, 2))
    assert (partition.isr, partition.leader) == ((0, 1, 2), 0)
    assert moving(five) == [("t", 0, [0, 3, 4, 1, 2], [3, 4], [1, 2])]
    in_sync(five, [0, 1, 2, 3])
    assert five.partition("t").is_reassigning
    in_sync(five, [0, 1, 2, 3, 4])
    partition = five.partition("t")
    assert (partition.replicas, partition.isr, partition.adding, partition.removing) == ((0, 3, 4), (0, 3, 4), (), ())
    assert moving(five) == []


def test_a_move_that_leaves_the_leader_out_elects_another(five: Any) -> None:
    five.create("t", [0, 1])
    move(five, [2, 3])
    result = in_sync(five, [0, 1, 2, 3])
    assert result.error_code == errors.NEW_LEADER_ELECTED.code
    partition = five.partition("t")
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((2, 3), 2, 1)


def test_another_order_of_the_same_replicas_is_done_at_once(five: Any) -> None:
    five.create("t", [0, 1, 2])
    assert move(five, [2, 1, 0]).error_code == 0
    assert five.partition("t").replicas == (2, 1, 0)
    assert moving(five) == []


def test_fewer_replicas_need_no_copying(five: Any) -> None:
    five.create("t", [0, 1, 2])
    move(five, [0, 1])
    assert five.partition("t").replicas == (0, 1)
    assert five.partition("t").isr == (0, 1)


def test_a_move_that_is_called_off_goes_back(five: Any) -> None:
    five.create("t", [0, 1])
    move(five, [2, 3])
    in_sync(five, [0, 1, 2])
    assert move(five, None).error_code == 0
    partition = five.partition("t")
    assert (partition.replicas, partition.isr, partition.adding, partition.removing) == ((0, 1), (0, 1), (), ())
    assert move(five, None).error_code == errors.NO_REASSIGNMENT_IN_PROGRESS.code


def test_a_move_may_be_given_another_goal(five: Any) -> None:
    five.create("t", [0, 1])
    move(five, [2, 3])
    assert move(five, [3, 4]).error_code == 0
    partition = five.partition("t")
    assert (partition.replicas, partition.adding, partition.removing) == ((3, 4, 0, 1, 2), (3, 4), (0, 1, 2))
    in_sync(five, [0, 1, 3, 4])
    assert five.partition("t").replicas == (3, 4)


def test_going_back_to_replicas_that_are_not_in_sync_is_refused(five: Any) -> None:
    five.create("t", [0])
    move(five, [1, 2])
    in_sync(five, [0, 1])
    five.apply(PartitionChangeRecord(partition_id=0, topic_id=five.image.topic("t").id, isr=[1], leader=1))
    refused = move(five, None)
    assert refused.error_code == errors.INVALID_REPLICA_ASSIGNMENT.code
    assert "no unclean election" in refused.error_message


@pytest.mark.parametrize(
    ("replicas", "name", "index", "error"),
    [
        ([0, 9], "t", 0, errors.INVALID_REPLICA_ASSIGNMENT),
        ([0, 0], "t", 0, errors.INVALID_REPLICA_ASSIGNMENT),
        ([], "t", 0, errors.INVALID_REPLICA_ASSIGNMENT),
        ([0, 1], "nowhere", 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ([0, 1], "t", 7, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (None, "t", 0, errors.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_moves_that_make_no_sense_are_refused(
    five: Any, replicas: list[int] | None, name: str, index: int, error: errors.WireError
) -> None:
    five.create("t", [0, 1])
    before = five.partition("t")
    assert move(five, replicas, name=name, index=index).error_code == error.code
    assert five.partition("t") == before


def test_a_change_of_the_replication_factor_can_be_forbidden(five: Any) -> None:
    five.create("t", [0, 1])
    refused = move(five, [0, 1, 2], may_resize=False)
    assert refused.error_code == errors.INVALID_REPLICATION_FACTOR.code
    assert refused.error_message == "the request allows no other number of replicas than 2, and names 3"
    assert move(five, [2, 3], may_resize=False).error_code == 0


def test_only_what_is_asked_about_is_listed(five: Any) -> None:
    five.create("t", [0], [0])
    five.create("u", [0])
    move(five, [1], index=1)
    move(five, [1], name="u")
    assert [row[:2] for row in moving(five)] == [("t", 1), ("u", 0)]
    asked = [Asked(name="t", partition_indexes=[0, 1, 5]), Asked(name="nowhere", partition_indexes=[0])]
    assert [row[:2] for row in moving(five, asked)] == [("t", 1)]
