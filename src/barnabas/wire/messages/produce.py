"""Produce: a client hands record batches to the leaders of their partitions.

Version 9 is the first flexible one, and version 13 names topics by id.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Buffer, Message, array, int16, int32, string, uuid
from barnabas.wire.message import records as record_bytes


class ProduceRequest(Message, api=ApiKey.PRODUCE, versions=range(3, 14), flexible=9):
    class TopicProduceData(Message):
        name: str = string(until=12, ignorable=True)
        topic_id: Uuid = uuid(since=13, ignorable=True)
        partition_data: list[ProduceRequest.PartitionProduceData] = array("PartitionProduceData")

    class PartitionProduceData(Message):
        index: int = int32()
        records: Buffer | None = record_bytes(nullable=True)

    transactional_id: str | None = string(since=3, nullable=True, default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)
