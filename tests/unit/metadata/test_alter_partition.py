"""AlterPartition: only a leader that is up to date may change its ISR."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.alter_partition import alter_partition
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.alter_partition import AlterPartitionRequest

State = AlterPartitionRequest.BrokerState


def wanted(isr: list[int], **more: Any) -> Any:
    epochs = more.pop("epochs", {})
    return AlterPartitionRequest.PartitionData(
        partition_index=more.pop("index", 0),
        new_isr_with_epochs=[State(broker_id=broker, broker_epoch=epochs.get(broker, 100 + broker)) for broker in isr],
        **more,
    )


def alter(cluster: Any, data: Any, *, broker: int = 0, topic: Any = None, epoch: int | None = None) -> Any:
    request = AlterPartitionRequest(
        broker_id=broker,
        broker_epoch=100 + broker if epoch is None else epoch,
        topics=[AlterPartitionRequest.TopicData(topic_id=topic or cluster.image.topic("t").id, partitions=[data])],
    )
    decision = alter_partition(cluster.image, request, cluster.facts)
    cluster.decided(decision)
    return decision.response.topics[0].partitions[0]


def test_an_isr_shrinks_and_grows(cluster: Any) -> None:
    cluster.create("t", [0, 1, 2])
    result = alter(cluster, wanted([0, 2]))
    assert (result.error_code, result.isr, result.partition_epoch, result.leader_epoch) == (0, [0, 2], 1, 0)
    assert cluster.partition("t").isr == (0, 2)
    result = alter(cluster, wanted([0, 2, 1], partition_epoch=1))
    assert (result.error_code, result.partition_epoch, result.leader_id) == (0, 2, 0)
    assert cluster.partition("t").isr == (0, 2, 1)


def test_the_old_form_without_epochs_is_understood(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    data = AlterPartitionRequest.PartitionData(partition_index=0, new_isr=[0])
    assert alter(cluster, data).error_code == 0
    assert cluster.partition("t").isr == (0,)


def test_the_same_isr_changes_nothing_and_is_confirmed(cluster: Any) -> None:
    cluster.create("t", [0, 1])
    result = alter(cluster, wanted([0, 1]))
    assert (result.error_code, result.partition_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("data", "broker", "error"),
    [
        (wanted([0], leader_epoch=1), 0, errors.NOT_CONTROLLER),
        (wanted([0], partition_epoch=2), 0, errors.NOT_CONTROLLER),
        (wanted([0], leader_epoch=-1, partition_epoch=1), 0, errors.FENCED_LEADER_EPOCH),
        (wanted([0], partition_epoch=0), 0, errors.INVALID_UPDATE_VERSION),
        (wanted([1], partition_epoch=1), 1, errors.INVALID_REQUEST),
        (wanted([1], partition_epoch=1), 0, errors.INVALID_REQUEST),
        (wanted([], partition_epoch=1), 0, errors.INVALID_REQUEST),
        (wanted([0, 0], partition_epoch=1), 0, errors.INVALID_REQUEST),
        (wanted([0, 7], partition_epoch=1), 0, errors.INVALID_REQUEST),
        (wanted([0], partition_epoch=1, leader_recovery_state=1), 0, errors.INVALID_REQUEST),
        (wanted([0], partition_epoch=1, leader_recovery_state=7), 0, errors.INVALID_REQUEST),
        (wanted([0, 1], partition_epoch=1, epochs={1: 55}), 0, errors.INELIGIBLE_REPLICA),
        (wanted([0, 2], partition_epoch=1), 0, errors.INELIGIBLE_REPLICA),
        (wanted([0], index=5), 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted([0], index=-1), 0, errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_refused(cluster: Any, data: Any, broker: int, error: Any) -> None:
    topic_id = cluster.create("t", [0, 1, 2])
    cluster.apply(
        r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[0]), r.FenceBrokerRecord(id=2, epoch=102)
    )
    before = cluster.partition("t")
    assert alter(cluster, data, broker=broker).error_code == error.code
    assert cluster.partition("t") == before


def test_an_unknown_topic_is_named_so(cluster: Any) -> None:
    assert alter(cluster, wanted([0]), topic=cluster.uuid(1)).error_code == errors.UNKNOWN_TOPIC_ID.code


def test_a_broker_of_an_earlier_life_is_refused_altogether(cluster: Any) -> None:
    cluster.create("t", [0])
    for broker, epoch in ((0, 99), (8, 108)):
        with pytest.raises(ApiError) as refused:
            alter(cluster, wanted([0]), broker=broker, epoch=epoch)
        assert refused.value.error is errors.STALE_BROKER_EPOCH


def test_a_leader_that_reassigned_itself_away_is_told_to_look(cluster: Any) -> None:
    topic_id = cluster.create("t", [0, 1])
    cluster.apply(
        r.PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1, 2, 0],
            adding_replicas=[2],
            removing_replicas=[0],
            directories=[cluster.directory(1), cluster.directory(2), cluster.directory(0)],
        )
    )
    result = alter(cluster, wanted([0, 1, 2], partition_epoch=1))
    assert result.error_code == errors.NEW_LEADER_ELECTED.code
    partition = cluster.partition("t")
    assert (partition.leader, partition.replicas, partition.isr) == (1, (1, 2), (1, 2))
    assert not partition.is_reassigning


def test_a_recovered_leader_says_so(cluster: Any) -> None:
    topic_id = cluster.create("t", [0, 1])
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[0], leader_recovery_state=1))
    assert alter(cluster, wanted([0, 1], partition_epoch=1, leader_recovery_state=1)).error_code == (
        errors.INVALID_REQUEST.code
    )
    assert alter(cluster, wanted([0], partition_epoch=1)).error_code == 0
    assert cluster.partition("t").leader_recovery_state == 0


def test_a_replica_in_a_directory_that_failed_is_not_taken_into_the_isr(cluster: Any) -> None:
    cluster.create("t", [0, 1, 2])
    assert alter(cluster, wanted([0, 2])).error_code == 0
    cluster.apply(r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=101, log_dirs=[cluster.uuid(77)]))
    refused = alter(cluster, wanted([0, 2, 1], partition_epoch=1))
    assert refused.error_code == errors.INELIGIBLE_REPLICA.code
