"""DescribeShareGroupOffsets: the start offsets of share groups, and their lag from version 1 on (KIP-1226)."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=range(2), flexible=0):
    class Group(Message):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsRequest.Topic] | None = array("Topic", nullable=True)

    class Topic(Message):
        topic_name: str = string()
        partitions: list[int] = array(int32)

    groups: list[Group] = array(Group)


class DescribeShareGroupOffsetsResponse(
    Message, api=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=range(2), flexible=0
):
    class Group(Message):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsResponse.Topic] = array("Topic")
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    class Topic(Message):
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[DescribeShareGroupOffsetsResponse.Partition] = array("Partition")

    class Partition(Message):
        partition_index: int = int32()
        start_offset: int = int64()
        leader_epoch: int = int32()
        lag: int = int64(since=1, default=-1, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    groups: list[Group] = array(Group)
