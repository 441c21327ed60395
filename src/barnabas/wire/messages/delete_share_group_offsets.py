"""DeleteShareGroupOffsets: delete the offsets of topics of a share group without members."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequest(Message, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class DeleteShareGroupOffsetsRequestTopic(Message):
        topic_name: str = string()

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponse(Message, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=range(1), flexible=0):
    class DeleteShareGroupOffsetsResponseTopic(Message):
        topic_name: str = string()
        topic_id: Uuid = uuid()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
