"""ListOffsets: clients and followers look up the offset that belongs to a timestamp.

Negative timestamps are questions of their own: -1 latest, -2 earliest, -3 largest timestamp (version 7), -4 earliest
local (8), -5 latest tiered (9), -6 earliest still to be uploaded (11). Version 10 adds a time-out. Barnabas adds, in
tagged fields that others skip, what the coordinator of a group must know to tell how far the group is behind in time.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, int64, string
from barnabas.wire.schema import TAGS_OF_OURS


class ListOffsetsRequest(Message, api=ApiKey.LIST_OFFSETS, versions=range(1, 12), flexible=6):
    class ListOffsetsTopic(Message):
        name: str = string()
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = array("ListOffsetsPartition")

    class ListOffsetsPartition(Message):
        partition_index: int = int32()
        current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
        timestamp: int = int64()
        unread_offsets: list[int] | None = array(
            int64, nullable=True, default=None, since=6, ignorable=True, tag=TAGS_OF_OURS, tagged_since=6
        )

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10, ignorable=True)


class ListOffsetsResponse(Message, api=ApiKey.LIST_OFFSETS, versions=range(1, 12), flexible=6):
    class ListOffsetsTopicResponse(Message):
        name: str = string()
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = array("ListOffsetsPartitionResponse")

    class ListOffsetsPartitionResponse(Message):
        partition_index: int = int32()
        error_code: int = int16()
        timestamp: int = int64(default=-1)
        offset: int = int64(default=-1)
        leader_epoch: int = int32(since=4, default=-1)
        log_start_offset: int = int64(since=6, default=-1, ignorable=True, tag=TAGS_OF_OURS, tagged_since=6)
        newest_timestamp: int = int64(since=6, default=-1, ignorable=True, tag=TAGS_OF_OURS + 1, tagged_since=6)
        unread_timestamps: list[int] = array(int64, since=6, ignorable=True, tag=TAGS_OF_OURS + 2, tagged_since=6)

    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
