"""AlterShareGroupOffsets: set the start offsets of a share group without members."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Message, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class Topic(Message):
        topic_name: str = string()
        partitions: list[AlterShareGroupOffsetsRequest.Partition] = array("Partition")

    class Partition(Message):
        partition_index: int = int32()
        start_offset: int = int64()

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class AlterShareGroupOffsetsResponse(Message, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class Topic(Message):
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[AlterShareGroupOffsetsResponse.Partition] = array("Partition")

    class Partition(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[Topic] = array(Topic)
