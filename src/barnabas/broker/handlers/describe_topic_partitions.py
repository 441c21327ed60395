"""DescribeTopicPartitions: topics page by page, with their eligible leader replicas.

Versions: 0.
Behaviour: topics are answered in order of their names from the cursor on, until the limit of partitions is reached;
the next cursor says where to go on. No topics asked for means all of them.
Differs from Kafka: authorised operations are not listed while there are no rights to check.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from typing import Final, TypeAlias

from barnabas.broker.access import audit, permissions
from barnabas.broker.access.authorized_operations import authorized_operations
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.topic_names import is_internal, reason_invalid
from barnabas.metadata.topics_image import TopicImage
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_BROKER
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

Row: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionRow: TypeAlias = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Steps: TypeAlias = Generator[None, None, DescribeTopicPartitionsResponse]

NAMES_MAX: Final = 200_000  # topics of one request


def handle(request: Request, message: DescribeTopicPartitionsRequest) -> Steps:
    check_cursor(message)
    image = request.broker.image
    alive = {node_id for node_id in image.brokers if not image.brokers[node_id].is_fenced}
    names = sorted({topic.name for topic in message.topics} or set(image.topics.by_name))
    if message.cursor is not None:
        names = names[bisect_left(names, message.cursor.topic_name) :]
    names, refused = yield from _split(request, names, is_all=not message.topics)
    start = 0
    if message.cursor is not None and names and names[0] == message.cursor.topic_name:
        start = message.cursor.partition_index
    partitions_max = request.broker.settings.max_request_partition_size_limit
    left = max(1, min(message.response_partition_limit, partitions_max))
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.by_name.get(name)
        yield
        if topic is None:
            response.topics.append(_absent(name))
            continue
        end = min(len(topic.partitions), start + left)
        response.topics.append(_topic(topic, start, end, alive))
        left -= end - start
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=end)
            break
        start = 0
    for row in response.topics:
        row.topic_authorized_operations = authorized_operations(request, ResourceType.TOPIC, row.name or "")
        yield
    response.topics += refused
    return response


def _split(request: Request, names: list[str], *, is_all: bool) -> Generator[None, None, tuple[list[str], list[Row]]]:
    """The names that the principal may describe, and rows for the others unless the request is for all topics."""
    asker = request.asker
    if asker is None:
        return names, []
    allowed, refused = [], []
    for name in names:
        if asker.may_describe(name) if is_all else asker.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            allowed.append(name)
        elif not is_all:
            refused.append(Row(error_code=errors.TOPIC_AUTHORIZATION_FAILED.code, name=name))
        yield
    if asker.denied:
        audit.refused(request, asker)
    return allowed, refused


def refuse(message: DescribeTopicPartitionsRequest, error: ApiError) -> DescribeTopicPartitionsResponse:
    """There is no error for the whole, so every topic has it."""
    return DescribeTopicPartitionsResponse(
        topics=[Row(error_code=error.error.code, name=topic.name) for topic in message.topics]
    )


def check_cursor(message: DescribeTopicPartitionsRequest) -> None:
    """INVALID_REQUEST unless the cursor points at a topic that the request asks for."""
    cursor, names = message.cursor, {topic.name for topic in message.topics}
    if cursor is None:
        return
    if names and cursor.topic_name not in names:
        raise ApiError(errors.INVALID_REQUEST, f"the cursor's topic {cursor.topic_name!r} is none of those asked for")
    if cursor.partition_index < 0:
        raise ApiError(errors.INVALID_REQUEST, f"the cursor's partition is {cursor.partition_index}")


def _absent(name: str) -> Row:
    error = errors.INVALID_TOPIC_EXCEPTION if reason_invalid(name) else errors.UNKNOWN_TOPIC_OR_PARTITION
    return Row(error_code=error.code, name=name, is_internal=is_internal(name))


def _topic(topic: TopicImage, start: int, end: int, alive: set[int]) -> Row:
    return Row(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(index, topic.partitions[index], alive) for index in range(start, end)],
    )


def _partition(index: int, partition: PartitionImage, alive: set[int]) -> PartitionRow:
    has_leader = partition.leader in alive
    return PartitionRow(
        error_code=0 if has_leader else errors.LEADER_NOT_AVAILABLE.code,
        partition_index=index,
        leader_id=partition.leader if has_leader else NO_BROKER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[replica for replica in partition.replicas if replica not in alive],
    )


# The handler itself checks DESCRIBE on each topic, since the names are many and the check takes turns as well.
API: Final = Api(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS, handle, at=CLIENT, needs=permissions.anyone, rows_max=NAMES_MAX, refuse=refuse
)
