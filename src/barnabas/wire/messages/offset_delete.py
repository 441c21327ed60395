"""OffsetDelete: an administrator forgets the offsets of a group for some partitions."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class OffsetDeleteRequest(Message, api=ApiKey.OFFSET_DELETE, versions=range(1)):
    class OffsetDeleteRequestTopic(Message):
        name: str = string()
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = array("OffsetDeleteRequestPartition")

    class OffsetDeleteRequestPartition(Message):
        partition_index: int = int32()

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponse(Message, api=ApiKey.OFFSET_DELETE, versions=range(1)):
    class OffsetDeleteResponseTopic(Message):
        name: str = string()
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = array("OffsetDeleteResponsePartition")

    class OffsetDeleteResponsePartition(Message):
        partition_index: int = int32()
        error_code: int = int16()

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
