"""OffsetDelete: delete the committed offsets of a group for some partitions.

Versions: 0.
Behaviour: as Kafka's. Offsets of topics that the group is subscribed to are kept: GROUP_SUBSCRIBED_TO_TOPIC.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.handlers.topic_order import TopicOrder
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import ATOMIC_ROWS_MIN, Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

RequestTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
ResponseTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic


async def handle(request: Request, message: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    topics, order = request.broker.image.topics.by_name, TopicOrder(message.topics)
    known, refused = [], []
    for topic in message.topics:
        found = topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if missing:
            refused.append(_unknown(topic.name, missing))
        if topic.partitions:
            known.append(topic)
    message.topics = known
    response: OffsetDeleteResponse = await request.broker.groups.ask(
        message.group_id, GroupRequest(message, request.version)
    )
    if not response.error_code:
        response.topics = order.arrange([*response.topics, *refused])
    return response


def _unknown(name: str, partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]) -> ResponseTopic:
    return ResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponse.OffsetDeleteResponsePartition(
                partition_index=each.partition_index, error_code=errors.UNKNOWN_TOPIC_OR_PARTITION.code
            )
            for each in partitions
        ],
    )


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    OffsetDeleteResponse,
    "topics",
    permissions.partitions(ResponseTopic, OffsetDeleteResponse.OffsetDeleteResponsePartition),
)


API: Final = Api(
    ApiKey.OFFSET_DELETE,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions", ATOMIC_ROWS_MIN),),
    needs=permissions.all_of(permissions.group(Operation.DELETE), _ROWS.check),
    audit=lambda message: [message.group_id],
)
