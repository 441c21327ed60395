"""ReadShareGroupStateSummary: the group coordinator reads the start offsets of share-partitions.

Version 1 adds the number of records above the start offset whose delivery is complete (KIP-1226).
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(
    Message, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=range(2), flexible=0
):
    class ReadStateSummaryData(Message):
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = array("PartitionData")

    class PartitionData(Message):
        partition: int = int32()
        leader_epoch: int = int32()

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class ReadShareGroupStateSummaryResponse(
    Message, api=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=range(2), flexible=0
):
    class ReadStateSummaryResult(Message):
        topic_id: Uuid = uuid()
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Message):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(since=1, default=-1, ignorable=True)

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
