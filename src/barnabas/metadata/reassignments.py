"""AlterPartitionReassignments and ListPartitionReassignments: partitions move to other brokers (KIP-455).

A move begins with all new replicas beside the old ones; it ends by itself in ``partition_change``, with the record that
takes the last missing replica into the ISR. One that is called off goes back to the replicas it had before. Copying is
replication's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from barnabas.metadata.assignment import check_assignment
from barnabas.metadata.decision import Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import allows_unclean_election, change_of
from barnabas.metadata.partition_change import PartitionChange
from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.metadata.topics_image import TopicImage
from barnabas.model.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    NO_REASSIGNMENT_IN_PROGRESS,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    ApiError,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Row: TypeAlias = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
Topic: TypeAlias = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
Ongoing: TypeAlias = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def alter_partition_reassignments(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, facts: Facts
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Each partition succeeds or fails alone."""
    may_resize = request.allow_replication_factor_change
    records: list[Message] = []
    topics: list[Topic] = []
    for topic in request.topics:
        rows: list[Row] = []
        for wanted in topic.partitions:
            try:
                check_size(len(records) + 1)
                change = _change(image, facts, topic.name, wanted.partition_index)
                if wanted.replicas is None:
                    _call_off(image, facts, topic.name, change)
                else:
                    _begin(image, change, wanted.replicas, may_resize=may_resize)
                record = change.record()
                if record is not None:
                    records.append(record)
                rows.append(Row(partition_index=wanted.partition_index, error_code=NONE.code, error_message=None))
            except ApiError as error:
                code = error.error.code
                rows.append(Row(partition_index=wanted.partition_index, error_code=code, error_message=error.message))
        topics.append(Topic(name=topic.name, partitions=rows))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_resize, error_message=None, responses=topics
    )
    return Decision(records, response)


def _change(image: ClusterImage, facts: Facts, name: str, index: int) -> PartitionChange:
    topic = image.topic(name)
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"the topic {name!r} has no partition {index}")
    return change_of(image, facts.schema, TopicIdPartition(topic.id, index))


def _begin(image: ClusterImage, change: PartitionChange, target: Sequence[int], *, may_resize: bool) -> None:
    check_assignment(image, target, replication_factor=None)
    partition = change.partition
    before = len(originals(partition))
    if not may_resize and len(target) != before:
        raise ApiError(
            INVALID_REPLICATION_FACTOR,
            f"the request allows no other number of replicas than {before}, and names {len(target)}",
        )
    removing = sorted(set(partition.replicas).difference(target))
    change.replicas = (*target, *removing)
    change.removing = tuple(removing)
    change.adding = tuple(sorted(set(target).difference(partition.replicas) | _still_adding(partition, target)))


def _still_adding(partition: PartitionImage, target: Iterable[int]) -> set[int]:
    """Replicas of an earlier move that this one keeps: they are new until they are in sync."""
    return set(partition.adding).intersection(target)


def originals(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas to which a move that is called off goes back."""
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def _call_off(image: ClusterImage, facts: Facts, name: str, change: PartitionChange) -> None:
    partition = change.partition
    if not partition.is_reassigning:
        raise ApiError(NO_REASSIGNMENT_IN_PROGRESS)
    change.replicas = originals(partition)
    change.isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    if not change.isr:
        if not allows_unclean_election(image, facts.schema, name):
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"{name}-{change.key.partition} cannot go back: no replica that it had before is in sync, and the "
                "topic allows no unclean election",
            )
        change.isr = change.replicas[:1]
    change.adding = change.removing = ()


def list_partition_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Those asked about, or all; partitions that are not being moved, and topics without any, are left out."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    if request.topics is None:
        moving: dict[str, list[int]] = {}
        for key in sorted(image.topics.index.reassigning):
            moving.setdefault(image.topics.by_id[key.topic_id].name, []).append(key.partition)
        asked = sorted(moving.items())
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    for name, indexes in asked:
        topic = image.topic(name)
        rows = [] if topic is None else list(_ongoing(topic, indexes))
        if rows:
            response.topics.append(
                ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=name, partitions=rows)
            )
    return response


def _ongoing(topic: TopicImage, indexes: Iterable[int]) -> Iterable[Ongoing]:
    for index in indexes:
        if 0 <= index < len(topic.partitions) and topic.partitions[index].is_reassigning:
            partition = topic.partitions[index]
            yield Ongoing(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
