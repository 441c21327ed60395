"""DescribeProducers: tools ask a leader for the producers that are active on its partitions."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class DescribeProducersRequest(Message, api=ApiKey.DESCRIBE_PRODUCERS, versions=range(1), flexible=0):
    class TopicRequest(Message):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    topics: list[TopicRequest] = array(TopicRequest)


class DescribeProducersResponse(Message, api=ApiKey.DESCRIBE_PRODUCERS, versions=range(1), flexible=0):
    class TopicResponse(Message):
        name: str = string()
        partitions: list[DescribeProducersResponse.PartitionResponse] = array("PartitionResponse")

    class PartitionResponse(Message):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable=True, default=None)
        active_producers: list[DescribeProducersResponse.ProducerState] = array("ProducerState")

    class ProducerState(Message):
        producer_id: int = int64()
        producer_epoch: int = int32()
        last_sequence: int = int32(default=-1)
        last_timestamp: int = int64(default=-1)
        coordinator_epoch: int = int32()
        current_txn_start_offset: int = int64(default=-1)

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
