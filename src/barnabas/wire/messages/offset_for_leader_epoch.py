"""OffsetForLeaderEpoch: a follower or a consumer asks where a leader epoch ends, to find out where its log diverges.

Version 3 tells consumers and followers apart.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(Message, api=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5), flexible=4):
    class OffsetForLeaderTopic(Message):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = array("OffsetForLeaderPartition")

    class OffsetForLeaderPartition(Message):
        partition: int = int32()
        current_leader_epoch: int = int32(default=-1)
        leader_epoch: int = int32()

    replica_id: int = int32(since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class OffsetForLeaderEpochResponse(Message, api=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5), flexible=4):
    class OffsetForLeaderTopicResult(Message):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = array("EpochEndOffset")

    class EpochEndOffset(Message):
        error_code: int = int16()
        partition: int = int32()
        leader_epoch: int = int32(default=-1)
        end_offset: int = int64(default=-1)

    throttle_time_ms: int = int32()
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
