"""ReadShareGroupState: a share-partition leader reads the state of its share-partitions."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(Message, api=ApiKey.READ_SHARE_GROUP_STATE, versions=range(1), flexible=0):
    class ReadStateData(Message):
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition: int = int32()
        leader_epoch: int = int32()

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class ReadShareGroupStateResponse(Message, api=ApiKey.READ_SHARE_GROUP_STATE, versions=range(1), flexible=0):
    class ReadStateResult(Message):
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        state_epoch: int = int32()
        start_offset: int = int64()
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = array("StateBatch")

    class StateBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()

    results: list[ReadStateResult] = array(ReadStateResult)
