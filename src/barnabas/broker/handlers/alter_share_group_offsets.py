"""AlterShareGroupOffsets: set the start offsets of a share group without members.

Versions: 0.
Behaviour: as Kafka's. A group that does not exist is created. Records from the new start offset on are delivered again.
Differs from Kafka: every change has a new state epoch, so a leader that still has the old state is fenced.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.coordinators import share_groups
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share.group import TopicState
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
Partition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


async def handle(request: Request, message: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    by_name = request.broker.image.topics.by_name
    topics: dict[Uuid, TopicState] = {}
    offsets: dict[tuple[Uuid, int], int] = {}
    for wanted in message.topics:
        known = by_name.get(wanted.topic_name)
        if known is None:
            continue
        indexes = {row.partition_index for row in wanted.partitions if 0 <= row.partition_index < len(known.partitions)}
        if indexes:
            topics[known.id] = TopicState(known.name, frozenset(indexes))
        offsets |= {(known.id, row.partition_index): row.start_offset for row in wanted.partitions}
    failed = await share_groups.alter(request.broker, message.group_id, topics, offsets)
    response = AlterShareGroupOffsetsResponse()
    for wanted in message.topics:
        known = by_name.get(wanted.topic_name)
        answer = Topic(topic_name=wanted.topic_name)
        if known is not None:
            answer.topic_id = known.id
        for row in wanted.partitions:
            part = Partition(partition_index=row.partition_index)
            if known is None or row.partition_index not in topics.get(known.id, TopicState("", frozenset())).partitions:
                part.error_code = errors.UNKNOWN_TOPIC_OR_PARTITION.code
                part.error_message = errors.UNKNOWN_TOPIC_OR_PARTITION.text
            elif (known.id, row.partition_index) in failed:
                failure = failed[known.id, row.partition_index]
                part.error_code, part.error_message = failure.error.code, failure.message
            answer.partitions.append(part)
        response.responses.append(answer)
    return response


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    AlterShareGroupOffsetsResponse,
    "responses",
    permissions.partitions(Topic, Partition, name="topic_name"),
    lambda row, _: str(row.topic_name),
)


API: Final = Api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    handle,
    at=CLIENT,
    needs=permissions.all_of(permissions.group(Operation.READ), _ROWS.check),
    audit=lambda message: [message.group_id],
)
