"""OffsetFetch: what groups have committed, of the partitions asked for or of all.

Versions: 1–10.
Behaviour: as Kafka's. A group that nobody knows has committed nothing, which is no error.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.handlers.topic_order import TopicOrder
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.offset_protocol import FetchOffsets, partition_errors
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

ERROR_SINCE: Final = 2  # before, an error can only be said of each partition
GROUPS_SINCE: Final = 8
IDS_SINCE: Final = 10

RequestGroup = OffsetFetchRequest.OffsetFetchRequestGroup
RequestTopics = OffsetFetchRequest.OffsetFetchRequestTopics
ResponseGroup = OffsetFetchResponse.OffsetFetchResponseGroup
ResponseTopics = OffsetFetchResponse.OffsetFetchResponseTopics


async def handle(request: Request, message: OffsetFetchRequest) -> OffsetFetchResponse:
    if request.version >= GROUPS_SINCE:
        return OffsetFetchResponse(
            groups=[await _fetch(request, group, message.require_stable) for group in message.groups]
        )
    topics = None
    if message.topics is not None:
        topics = [RequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in message.topics]
    group = await _fetch(request, RequestGroup(group_id=message.group_id, topics=topics), message.require_stable)
    return _single(request.version, group, topics or [])


async def _fetch(request: Request, group: RequestGroup, require_stable: bool) -> ResponseGroup:
    image, uses_ids = request.broker.image, request.version >= IDS_SINCE
    unknown: list[ResponseTopics] = []
    order = None
    if uses_ids and group.topics is not None:
        order = TopicOrder(group.topics)
        unknown = partition_errors(
            (topic for topic in group.topics if topic.topic_id not in image.topics.by_id), errors.UNKNOWN_TOPIC_ID
        )
        group.topics = _named(image, group.topics)
    try:
        response: ResponseGroup = await request.broker.groups.ask(group.group_id, FetchOffsets(group, require_stable))
    except ApiError as error:
        return ResponseGroup(group_id=group.group_id, error_code=error.error.code)
    if uses_ids:
        response.topics = _identified(image, response.topics)
    if order is not None:
        response.topics = order.arrange([*response.topics, *unknown])
    return response


def _named(image: ClusterImage, topics: list[RequestTopics]) -> list[RequestTopics]:
    named = []
    for topic in topics:
        found = image.topics.by_id.get(topic.topic_id)
        if found is not None:
            topic.name = found.name
            named.append(topic)
    return named


def _identified(image: ClusterImage, topics: list[ResponseTopics]) -> list[ResponseTopics]:
    """With ids instead of names; a topic that is gone has no id and is left out."""
    identified = []
    for topic in topics:
        found = image.topics.by_name.get(topic.name)
        if found is not None:
            topic.topic_id = found.id
            identified.append(topic)
    return identified


def _single(version: int, group: ResponseGroup, topics: list[RequestTopics]) -> OffsetFetchResponse:
    """The answer before there were several groups in one."""
    if group.error_code and version < ERROR_SINCE:
        group.topics = partition_errors(topics, errors.error_of(group.error_code))
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _needs(request: GuardedRequest, message: OffsetFetchRequest) -> Message | None:
    """DESCRIBE on each group and on each topic. Denied groups and topics have an error in the response."""
    if request.version < GROUPS_SINCE:
        return _needs_single(request, message)
    may = request.asker.may
    message.groups, denied = permissions.parted(
        message.groups, lambda group: may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    )
    code = errors.GROUP_AUTHORIZATION_FAILED.code
    refused = [ResponseGroup(group_id=group.group_id, error_code=code) for group in denied]
    hidden, orders = {}, {}
    for group in message.groups:
        if group.topics is not None:
            orders[group.group_id] = TopicOrder(group.topics)
            group.topics, hidden[group.group_id] = permissions.parted(group.topics, lambda row: _may_see(request, row))

    def amend(answer: OffsetFetchResponse) -> None:
        for group in answer.groups:
            group.topics = [row for row in group.topics if _may_see(request, row)]
            if group.group_id in orders:
                refusals = partition_errors(hidden[group.group_id], errors.TOPIC_AUTHORIZATION_FAILED)
                group.topics = orders[group.group_id].arrange([*group.topics, *refusals])
        answer.groups += refused

    request.when_answered(amend)
    return None


def _needs_single(request: GuardedRequest, message: OffsetFetchRequest) -> Message | None:
    part = OffsetFetchResponse.OffsetFetchResponsePartition
    is_allowed = request.asker.may(Operation.DESCRIBE, ResourceType.GROUP, message.group_id)
    error = errors.TOPIC_AUTHORIZATION_FAILED if is_allowed else errors.GROUP_AUTHORIZATION_FAILED
    allowed, denied = permissions.parted(message.topics or (), lambda row: is_allowed and _may_see(request, row))
    refused = [
        OffsetFetchResponse.OffsetFetchResponseTopic(
            name=row.name,
            partitions=[
                part(partition_index=index, committed_offset=-1, metadata="", error_code=error.code)
                for index in row.partition_indexes
            ],
        )
        for row in denied
    ]
    if not is_allowed:
        return OffsetFetchResponse(error_code=error.code, topics=refused if request.version < ERROR_SINCE else [])
    order = None
    if message.topics is not None:
        order, message.topics = TopicOrder(message.topics), allowed

    def amend(answer: OffsetFetchResponse) -> None:
        answer.topics = [row for row in answer.topics if _may_see(request, row)]
        if order is not None:
            answer.topics = order.arrange([*answer.topics, *refused])

    request.when_answered(amend)
    return None


def _may_see(request: GuardedRequest, row: Any) -> bool:
    name = permissions.topic_name(row, request.image)
    return name is None or permissions.may_describe_topic(request, name)


API: Final = Api(
    ApiKey.OFFSET_FETCH,
    handle,
    at=CLIENT,
    portions=(
        Portions("groups.topics.partition_indexes", "groups.topics.partitions"),
        Portions("topics.partition_indexes", "topics.partitions"),
    ),
    needs=_needs,
)
