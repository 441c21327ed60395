"""DeleteShareGroupState: the group coordinator deletes the state of share-partitions."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, uuid


class DeleteShareGroupStateRequest(Message, api=ApiKey.DELETE_SHARE_GROUP_STATE, versions=range(1), flexible=0):
    class DeleteStateData(Message):
        topic_id: Uuid = uuid()
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition: int = int32()

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class DeleteShareGroupStateResponse(Message, api=ApiKey.DELETE_SHARE_GROUP_STATE, versions=range(1), flexible=0):
    class DeleteStateResult(Message):
        topic_id: Uuid = uuid()
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    results: list[DeleteStateResult] = array(DeleteStateResult)
