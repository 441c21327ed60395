"""DeleteRecords: an administrator drops all records of a partition below an offset."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class DeleteRecordsRequest(Message, api=ApiKey.DELETE_RECORDS, versions=range(3), flexible=2):
    class DeleteRecordsTopic(Message):
        name: str = string()
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = array("DeleteRecordsPartition")

    class DeleteRecordsPartition(Message):
        partition_index: int = int32()
        offset: int = int64()

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


class DeleteRecordsResponse(Message, api=ApiKey.DELETE_RECORDS, versions=range(3), flexible=2):
    class DeleteRecordsTopicResult(Message):
        name: str = string()
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = array("DeleteRecordsPartitionResult")

    class DeleteRecordsPartitionResult(Message):
        partition_index: int = int32()
        low_watermark: int = int64()
        error_code: int = int16()

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
