"""OffsetFetch: what groups have committed, of the partitions asked for or of all.

Versions: 1–10.
Behaviour: as Kafka's. A group that nobody knows has committed nothing, which is no error.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.offset_protocol import FetchOffsets, partition_errors
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError
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
    if uses_ids and group.topics is not None:
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
    response.topics += unknown
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
