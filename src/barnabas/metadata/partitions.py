"""CreatePartitions: more partitions for topics that exist, placed here or by hand.

A topic never loses partitions and keeps its replication factor. Who may alter which topic has been settled by the
handler.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from barnabas.metadata.assignment import assigned_partition, check_assignment, place_partitions
from barnabas.metadata.decision import Decision, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.topics_image import TopicImage
from barnabas.model.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    ApiError,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

CreatePartitionsTopic: TypeAlias = CreatePartitionsRequest.CreatePartitionsTopic
TopicResult: TypeAlias = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, *, seed: int
) -> Decision[CreatePartitionsResponse]:
    records: list[Message] = []
    results: list[TopicResult] = []
    counts = Counter(topic.name for topic in request.topics)
    for number, topic in enumerate(request.topics):
        if counts[topic.name] > 1:
            continue
        try:
            records += _create(image, topic, seed=seed + number, earlier_count=len(records))
            results.append(TopicResult(name=topic.name))
        except ApiError as error:
            results.append(_refused(topic.name, error))
    duplicate = ApiError(INVALID_REQUEST, "the request names the topic twice")
    results += [_refused(name, duplicate) for name, count in counts.items() if count > 1]
    return Decision([] if request.validate_only else records, CreatePartitionsResponse(results=results))


def _refused(name: str, error: ApiError) -> TopicResult:
    return TopicResult(name=name, error_code=error.error.code, error_message=error.message)


def _create(image: ClusterImage, wanted: CreatePartitionsTopic, *, seed: int, earlier_count: int) -> list[Message]:
    topic = image.topic(wanted.name)
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION)
    additional = _additional(topic, wanted.count)
    check_size(earlier_count + additional)
    first = len(topic.partitions)
    replication_factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        partitions = place_partitions(
            image, partition_count=additional, replication_factor=replication_factor, seed=seed
        )
    else:
        if len(wanted.assignments) != additional:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"the request is for {additional} more partitions, and its assignment for {len(wanted.assignments)}",
            )
        partitions = []
        for index, assignment in enumerate(wanted.assignments, first):
            check_assignment(image, assignment.broker_ids, replication_factor=replication_factor)
            partitions.append(assigned_partition(image, index, assignment.broker_ids))
    return [partition.record(topic.id, index) for index, partition in enumerate(partitions, first)]


def _additional(topic: TopicImage, count: int) -> int:
    existing = len(topic.partitions)
    if count == existing:
        raise ApiError(INVALID_PARTITIONS, f"the topic has {existing} partitions already")
    if count < existing:
        raise ApiError(
            INVALID_PARTITIONS,
            f"the topic has {existing} partitions, and none can be taken away to leave {count}",
        )
    return count - existing
