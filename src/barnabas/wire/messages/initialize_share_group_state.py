"""InitializeShareGroupState: the group coordinator creates the state of share-partitions."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Message, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=range(1), flexible=0):
    class InitializeStateData(Message):
        topic_id: Uuid = uuid()
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition: int = int32()
        state_epoch: int = int32()
        start_offset: int = int64()

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


class InitializeShareGroupStateResponse(
    Message, api=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=range(1), flexible=0
):
    class InitializeStateResult(Message):
        topic_id: Uuid = uuid()
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    results: list[InitializeStateResult] = array(InitializeStateResult)
