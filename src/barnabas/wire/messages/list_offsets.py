"""ListOffsets: clients and followers look up the offset that belongs to a timestamp.

Negative timestamps are questions of their own: -1 latest, -2 earliest, -3 largest timestamp (version 7), -4 earliest
local (8), -5 latest tiered (9), -6 earliest still to be uploaded (11). Version 10 adds a time-out.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, int64, string


class ListOffsetsRequest(Message, api=ApiKey.LIST_OFFSETS, versions=range(1, 12), flexible=6):
    class ListOffsetsTopic(Message):
        name: str = string()
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = array("ListOffsetsPartition")

    class ListOffsetsPartition(Message):
        partition_index: int = int32()
        current_leader_epoch: int = int32(since=4, default=-1, ignorable=True)
        timestamp: int = int64()

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

    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
