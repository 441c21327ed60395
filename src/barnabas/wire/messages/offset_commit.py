"""OffsetCommit: a member of a group stores the offsets it has reached.

Version 7 adds static members, version 9 the epochs of the consumer protocol, version 10 names topics by id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class OffsetCommitRequest(Message, api=ApiKey.OFFSET_COMMIT, versions=range(2, 11), flexible=8):
    class OffsetCommitRequestTopic(Message):
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = array("OffsetCommitRequestPartition")

    class OffsetCommitRequestPartition(Message):
        partition_index: int = int32()
        committed_offset: int = int64()
        committed_leader_epoch: int = int32(since=6, default=-1, ignorable=True)
        committed_metadata: str | None = string(nullable=True)

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=7, nullable=True, default=None)
    retention_time_ms: int = int64(until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponse(Message, api=ApiKey.OFFSET_COMMIT, versions=range(2, 11), flexible=8):
    class OffsetCommitResponseTopic(Message):
        name: str = string(until=9, ignorable=True)
        topic_id: Uuid = uuid(since=10, ignorable=True)
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = array("OffsetCommitResponsePartition")

    class OffsetCommitResponsePartition(Message):
        partition_index: int = int32()
        error_code: int = int16()

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
