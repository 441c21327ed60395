"""DescribeShareGroupOffsets: the start offsets of share groups, and their lag.

Versions: 0–1 (1 has the lag).
Behaviour: as Kafka's. Without topics all share-partitions with state are described. The lag is the number of records
from the start offset to the end of the partition whose delivery is not complete; -1 if it is not known.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators import share_groups
from barnabas.broker.handlers.end_offsets import end_offsets
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import UNINITIALIZED_OFFSET, ShareState
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

UNKNOWN_LAG: Final = -1
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
Partition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


async def handle(request: Request, message: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    response = DescribeShareGroupOffsetsResponse()
    for group in message.groups:
        try:
            if not group.group_id:
                raise ApiError(errors.INVALID_GROUP_ID)
            wanted = await _wanted(request, group)
            response.groups.append(await _group(request, group.group_id, wanted))
        except ApiError as error:
            response.groups.append(
                Group(group_id=group.group_id, error_code=error.error.code, error_message=error.message)
            )
    return response


async def _wanted(
    request: Request, group: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
) -> Mapping[str, list[int]]:
    if group.topics is not None:
        return {topic.topic_name: topic.partitions for topic in group.topics}
    states = await share_groups.states(request.broker, group.group_id)
    asker = request.asker
    return {
        state.name: sorted(state.partitions)
        for state in states.initialized.values()
        if asker is None or asker.may_describe(state.name)
    }


async def _group(request: Request, group_id: str, wanted: Mapping[str, list[int]]) -> Group:
    broker = request.broker
    places = [TopicPartition(name, index) for name, indexes in wanted.items() for index in indexes]
    ends = await end_offsets(broker, places)
    by_name = broker.image.topics.by_name
    rows = iter(
        await asyncio.gather(
            *(
                _partition(request, group_id, by_name[place.topic].id, place, ends.get(place))
                if place.topic in by_name and 0 <= place.partition < len(by_name[place.topic].partitions)
                else _refused(place.partition, errors.UNKNOWN_TOPIC_OR_PARTITION)
                for place in places
            )
        )
    )
    return Group(
        group_id=group_id,
        topics=[
            Topic(
                topic_name=name,
                topic_id=by_name[name].id if name in by_name else Uuid(bytes(16)),
                partitions=[next(rows) for _ in indexes],
            )
            for name, indexes in wanted.items()
        ],
    )


async def _partition(
    request: Request, group_id: str, topic_id: Uuid, place: TopicPartition, end_offset: int | None
) -> Partition:
    try:
        state = await request.broker.persister.read_summary(SharePartitionKey(group_id, topic_id, place.partition))
    except ApiError as error:
        return await _refused(place.partition, error.error, error.message)
    return Partition(
        partition_index=place.partition,
        start_offset=state.start_offset,
        leader_epoch=max(state.leader_epoch, 0) if state.start_offset != UNINITIALIZED_OFFSET else 0,
        lag=_lag(state, end_offset),
    )


def _lag(state: ShareState, end_offset: int | None) -> int:
    if end_offset is None or state.start_offset == UNINITIALIZED_OFFSET or state.delivery_complete_count < 0:
        return UNKNOWN_LAG
    return max(0, end_offset - state.start_offset - state.delivery_complete_count)


async def _refused(index: int, error: WireError, message: str | None = None) -> Partition:
    return Partition(
        partition_index=index,
        start_offset=UNINITIALIZED_OFFSET,
        error_code=error.code,
        error_message=message or error.text,
    )


_GROUPS: Final = permissions.Rows(
    "groups",
    Operation.DESCRIBE,
    ResourceType.GROUP,
    DescribeShareGroupOffsetsResponse,
    "groups",
    lambda row, error: Group(group_id=row.group_id, error_code=error.code, error_message=error.text),
    lambda row, _: str(row.group_id),
)


def _needs(request: GuardedRequest, message: DescribeShareGroupOffsetsRequest) -> Message | None:
    """DESCRIBE on each group, and on each topic."""
    answer = _GROUPS.check(request, message)
    if answer is None:
        request.when_answered(lambda response: _hide_topics(request, response))
    return answer


def _hide_topics(request: GuardedRequest, response: DescribeShareGroupOffsetsResponse) -> None:
    code = errors.TOPIC_AUTHORIZATION_FAILED.code
    for group in response.groups:
        for topic in group.topics:
            if not permissions.may_describe_topic(request, topic.topic_name):
                topic.topic_id = Uuid(bytes(16))
                topic.partitions = [
                    Partition(partition_index=row.partition_index, error_code=code) for row in topic.partitions
                ]


API: Final = Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, handle, at=CLIENT, needs=_needs)
