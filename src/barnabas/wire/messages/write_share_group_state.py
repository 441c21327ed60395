"""WriteShareGroupState: a share-partition leader writes changes to the state of its share-partitions.

Version 1 adds the number of records above the start offset whose delivery is complete (KIP-1226).
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(Message, api=ApiKey.WRITE_SHARE_GROUP_STATE, versions=range(2), flexible=0):
    class WriteStateData(Message):
        topic_id: Uuid = uuid()
        partitions: list[WriteShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition: int = int32()
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(since=1, default=-1, ignorable=True)
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = array("StateBatch")

    class StateBatch(Message):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


class WriteShareGroupStateResponse(Message, api=ApiKey.WRITE_SHARE_GROUP_STATE, versions=range(2), flexible=0):
    class WriteStateResult(Message):
        topic_id: Uuid = uuid()
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)

    results: list[WriteStateResult] = array(WriteStateResult)
