"""AlterPartition: a leader asks that its ISR be changed, and the controller sees whether it still may.

The request carries the epochs it was made in; whoever is behind is told so and nothing is changed. Leaders never
decide on their ISR alone.
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import PartitionChanges
from barnabas.metadata.partition_image import LeaderRecoveryState, PartitionImage, TopicIdPartition
from barnabas.metadata.records import NO_LEADER_CHANGE
from barnabas.metadata.registrations import check_broker_epoch
from barnabas.model.errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NEW_LEADER_ELECTED,
    NONE,
    NOT_CONTROLLER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    WireError,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

Wanted: TypeAlias = AlterPartitionRequest.PartitionData
Result: TypeAlias = AlterPartitionResponse.PartitionData


def alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, facts: Facts
) -> Decision[AlterPartitionResponse]:
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    changes = PartitionChanges(image, facts.schema)  # for all of them: a broker that comes back joins thousands at once
    topics: list[AlterPartitionResponse.TopicData] = []
    for data in request.topics:
        topic = image.topic_of_id(data.topic_id)
        results = []
        for wanted in data.partitions:
            if topic is None:
                results.append(Result(partition_index=wanted.partition_index, error_code=UNKNOWN_TOPIC_ID.code))
            else:
                key = TopicIdPartition(topic.id, wanted.partition_index)
                results.append(_alter(image, changes, request.broker_id, key, wanted, records))
        topics.append(AlterPartitionResponse.TopicData(topic_id=data.topic_id, partitions=results))
    return Decision(records, AlterPartitionResponse(topics=topics))


def _alter(
    image: ClusterImage,
    changes: PartitionChanges,
    broker_id: int,
    key: TopicIdPartition,
    wanted: Wanted,
    records: list[Message],
) -> Result:
    partitions = image.topics.by_id[key.topic_id].partitions
    if not 0 <= key.partition < len(partitions):
        return Result(partition_index=key.partition, error_code=UNKNOWN_TOPIC_OR_PARTITION.code)
    partition = partitions[key.partition]
    error = refusal(image, broker_id, partition, wanted)
    if error is not NONE:
        return Result(partition_index=key.partition, error_code=error.code)
    change = changes.of(key)
    change.isr = tuple(new_isr(wanted))
    change.leader_recovery_state = wanted.leader_recovery_state
    record = change.record()
    if record is not None:
        records.append(record)
        partition = partition.merged(record)
        if record.leader not in (broker_id, NO_LEADER_CHANGE):
            # The new ISR completed a reassignment that leaves the leader out. It must read the metadata first.
            return Result(partition_index=key.partition, error_code=NEW_LEADER_ELECTED.code)
    return Result(
        partition_index=key.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def new_isr(wanted: Wanted) -> dict[int, int]:
    """The replicas asked for, with the broker epoch each was seen in; -1 before version 3, which carries none."""
    if wanted.new_isr_with_epochs:
        return {state.broker_id: state.broker_epoch for state in wanted.new_isr_with_epochs}
    return dict.fromkeys(wanted.new_isr, -1)


def refusal(image: ClusterImage, broker_id: int, partition: PartitionImage, wanted: Wanted) -> WireError:
    """Why the change cannot be made, or NONE."""
    # A leader that is ahead of this picture has heard from a later controller: there is one.
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    isr = new_isr(wanted)
    asked_count = len(wanted.new_isr_with_epochs) or len(wanted.new_isr)
    if len(isr) != asked_count or not isr.keys() <= set(partition.replicas) or partition.leader not in isr:
        return INVALID_REQUEST
    if wanted.leader_recovery_state not in (LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING):
        return INVALID_REQUEST
    if wanted.leader_recovery_state == LeaderRecoveryState.RECOVERING and (
        len(isr) > 1 or partition.leader_recovery_state == LeaderRecoveryState.RECOVERED
    ):
        return INVALID_REQUEST
    if not all(_is_eligible(image, partition, replica, epoch) for replica, epoch in isr.items()):
        return INELIGIBLE_REPLICA
    return NONE


def _is_eligible(image: ClusterImage, partition: PartitionImage, broker_id: int, epoch: int) -> bool:
    """A broker that restarted since the leader saw it may have lost its tail; it must catch up again first.

    One whose directory has failed has lost all of it, though a fetch from before that may still be under way.
    """
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.is_active or epoch not in (-1, broker.epoch):
        return False
    return broker.has_online(partition.directory_of(broker_id))
