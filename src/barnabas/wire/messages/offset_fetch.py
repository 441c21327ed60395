"""OffsetFetch: a member or a tool asks for the offsets a group has committed.

Null asks for all topics. Version 7 can insist on stable offsets, version 8 asks for several groups at once, version 9
adds the epochs of the consumer protocol, version 10 names topics by id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequest(Message, api=ApiKey.OFFSET_FETCH, versions=range(1, 11), flexible=6):
    class OffsetFetchRequestTopic(Message):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    class OffsetFetchRequestGroup(Message):
        group_id: str = string()
        member_id: str | None = string(since=9, nullable=True, default=None, ignorable=True)
        member_epoch: int = int32(since=9, default=-1, ignorable=True)
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = array(
            "OffsetFetchRequestTopics", nullable=True
        )

    class OffsetFetchRequestTopics(Message):
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partition_indexes: list[int] = array(int32)

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, until=7, nullable=True, nullable_since=2
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


class OffsetFetchResponse(Message, api=ApiKey.OFFSET_FETCH, versions=range(1, 11), flexible=6):
    class OffsetFetchResponseTopic(Message):
        name: str = string()
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = array("OffsetFetchResponsePartition")

    class OffsetFetchResponsePartition(Message):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=5, default=-1, ignorable=True)
        metadata: str | None = string(nullable=True)
        error_code: int = int16()

    class OffsetFetchResponseGroup(Message):
        group_id: str = string()
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = array("OffsetFetchResponseTopics")
        error_code: int = int16()

    class OffsetFetchResponseTopics(Message):
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = array("OffsetFetchResponsePartitions")

    class OffsetFetchResponsePartitions(Message):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(default=-1)
        metadata: str | None = string(nullable=True)
        error_code: int = int16()

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
