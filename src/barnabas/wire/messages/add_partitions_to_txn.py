"""AddPartitionsToTxn: a producer, or a broker on its behalf, adds partitions to a transaction.

From version 4 on only brokers send it, for several transactions at once, and may merely verify.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnRequest(Message, api=ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(6), flexible=3):
    class AddPartitionsToTxnTransaction(Message):
        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        verify_only: bool = boolean()
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array("AddPartitionsToTxnTopic")

    class AddPartitionsToTxnTopic(Message):
        name: str = string()
        partitions: list[int] = array(int32)

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, since=4)
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


class AddPartitionsToTxnResponse(Message, api=ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(6), flexible=3):
    class AddPartitionsToTxnResult(Message):
        transactional_id: str = string()
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = array(
            "AddPartitionsToTxnTopicResult"
        )

    class AddPartitionsToTxnTopicResult(Message):
        name: str = string()
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = array(
            "AddPartitionsToTxnPartitionResult"
        )

    class AddPartitionsToTxnPartitionResult(Message):
        partition_index: int = int32()
        partition_error_code: int = int16()

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, until=3)
