"""AlterShareGroupOffsets: set the start offsets of a share group without members."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(Message, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class AlterShareGroupOffsetsRequestTopic(Message):
        topic_name: str = string()
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = array(
            "AlterShareGroupOffsetsRequestPartition"
        )

    class AlterShareGroupOffsetsRequestPartition(Message):
        partition_index: int = int32()
        start_offset: int = int64()

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponse(Message, api=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class AlterShareGroupOffsetsResponseTopic(Message):
        topic_name: str = string()
        topic_id: Uuid = uuid()
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = array(
            "AlterShareGroupOffsetsResponsePartition"
        )

    class AlterShareGroupOffsetsResponsePartition(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic)
