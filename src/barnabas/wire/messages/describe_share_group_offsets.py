"""DescribeShareGroupOffsets: the start offsets of share groups, and their lag from version 1 on (KIP-1226)."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=range(2), flexible=0):
    class DescribeShareGroupOffsetsRequestGroup(Message):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = array(
            "DescribeShareGroupOffsetsRequestTopic", nullable=True
        )

    class DescribeShareGroupOffsetsRequestTopic(Message):
        topic_name: str = string()
        partitions: list[int] = array(int32)

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


class DescribeShareGroupOffsetsResponse(
    Message, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=range(2), flexible=0
):
    class DescribeShareGroupOffsetsResponseGroup(Message):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = array(
            "DescribeShareGroupOffsetsResponseTopic"
        )
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    class DescribeShareGroupOffsetsResponseTopic(Message):
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = array(
            "DescribeShareGroupOffsetsResponsePartition"
        )

    class DescribeShareGroupOffsetsResponsePartition(Message):
        partition_index: int = int32()
        start_offset: int = int64()
        leader_epoch: int = int32()
        lag: int = int64(since=1, default=-1, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
