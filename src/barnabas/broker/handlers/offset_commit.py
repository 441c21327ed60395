"""OffsetCommit: a group stores how far it has read.

Versions: 2–10.
Behaviour: as Kafka's. Each partition succeeds or fails alone, as far as the group lets the caller commit at all.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.handlers.topic_order import TopicOrder
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import ATOMIC_ROWS_MIN, Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

IDS_SINCE: Final = 10

RequestTopic = OffsetCommitRequest.OffsetCommitRequestTopic
ResponseTopic = OffsetCommitResponse.OffsetCommitResponseTopic


async def handle(request: Request, message: OffsetCommitRequest) -> OffsetCommitResponse:
    groups, order = request.broker.groups, TopicOrder(message.topics)
    known, refused = _sorted_out(request.broker.image, message.topics, uses_ids=request.version >= IDS_SINCE)
    if not known:
        return OffsetCommitResponse(topics=order.arrange(refused))
    message.topics = known
    try:
        response: OffsetCommitResponse = await groups.ask(
            message.group_id,
            GroupRequest(message, request.version, topic_ids=groups.topic_ids(topic.name for topic in known)),
        )
    except ApiError as error:
        response = OffsetCommitResponse(topics=[_answer(topic, error.error) for topic in known])
    response.topics = order.arrange([*response.topics, *refused])
    return response


def _sorted_out(
    image: ClusterImage, topics: list[RequestTopic], *, uses_ids: bool
) -> tuple[list[RequestTopic], list[ResponseTopic]]:
    """The topics with the partitions that exist, names filled in; and the answers for what does not exist."""
    known: list[RequestTopic] = []
    refused: list[ResponseTopic] = []
    for topic in topics:
        found = image.topics.by_id.get(topic.topic_id) if uses_ids else image.topics.by_name.get(topic.name)
        if found is None:
            refused.append(_answer(topic, errors.UNKNOWN_TOPIC_ID if uses_ids else errors.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic.name = found.name
        count = len(found.partitions)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing:
            topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
            gone = RequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
            refused.append(_answer(gone, errors.UNKNOWN_TOPIC_OR_PARTITION))
        if topic.partitions:
            known.append(topic)
    return known, refused


def _answer(topic: RequestTopic, error: WireError) -> ResponseTopic:
    return ResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponse.OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error.code
            )
            for each in topic.partitions
        ],
    )


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    OffsetCommitResponse,
    "topics",
    permissions.partitions(ResponseTopic, OffsetCommitResponse.OffsetCommitResponsePartition),
)


def _needs(request: GuardedRequest, message: OffsetCommitRequest) -> Message | None:
    """READ on the group and on each topic."""
    whole = permissions.denial(request, Operation.READ, ResourceType.GROUP, message.group_id)
    return _ROWS.apply(request, message, whole)


API: Final = Api(
    ApiKey.OFFSET_COMMIT,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions", ATOMIC_ROWS_MIN),),
    needs=_needs,
)
