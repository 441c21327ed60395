"""DescribeTransactions: tools ask a coordinator for the state of transactions."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api=ApiKey.DESCRIBE_TRANSACTIONS, versions=range(1), flexible=0):
    transactional_ids: list[str] = array(string)


class DescribeTransactionsResponse(Message, api=ApiKey.DESCRIBE_TRANSACTIONS, versions=range(1), flexible=0):
    class TransactionState(Message):
        error_code: int = int16()
        transactional_id: str = string()
        transaction_state: str = string()
        transaction_timeout_ms: int = int32()
        transaction_start_time_ms: int = int64()
        producer_id: int = int64()
        producer_epoch: int = int16()
        topics: list[DescribeTransactionsResponse.TopicData] = array("TopicData")

    class TopicData(Message):
        topic: str = string()
        partitions: list[int] = array(int32)

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
