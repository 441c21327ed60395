"""Produce: a client hands record batches to the leader of their partitions and learns the offsets they were given.

Version 8 adds errors per record, version 10 tells the new leader with a refusal, version 12 adds partitions to a
transaction on the way, and version 13 names topics by id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Buffer, Message, array, int16, int32, int64, records, string, struct, uuid


class ProduceRequest(Message, api=ApiKey.PRODUCE, versions=range(3, 14), flexible=9):
    class TopicProduceData(Message):
        name: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partition_data: list[ProduceRequest.PartitionProduceData] = array("PartitionProduceData")

    class PartitionProduceData(Message):
        index: int = int32()
        records: Buffer | None = records(nullable=True)

    transactional_id: str | None = string(nullable=True, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class ProduceResponse(Message, api=ApiKey.PRODUCE, versions=range(3, 14), flexible=9):
    class TopicProduceResponse(Message):
        name: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = array("PartitionProduceResponse")

    class PartitionProduceResponse(Message):
        index: int = int32()
        error_code: int = int16()
        base_offset: int = int64()
        log_append_time_ms: int = int64(default=-1)
        log_start_offset: int = int64(since=5, default=-1, ignorable=True)
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = array(
            "BatchIndexAndErrorMessage", since=8, ignorable=True
        )
        error_message: str | None = string(since=8, nullable=True, default=None, ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", since=10, tag=0)

    class BatchIndexAndErrorMessage(Message):
        batch_index: int = int32()
        batch_index_error_message: str | None = string(nullable=True, default=None)

    class LeaderIdAndEpoch(Message):
        leader_id: int = int32(default=-1)
        leader_epoch: int = int32(default=-1)

    class NodeEndpoint(Message):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable=True, default=None)

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)
