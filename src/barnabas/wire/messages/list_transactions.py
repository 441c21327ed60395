"""ListTransactions: tools ask a coordinator for its transactions.

Version 1 filters by duration, version 2 by a pattern of ids.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api=ApiKey.LIST_TRANSACTIONS, versions=range(3), flexible=0):
    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable=True, default=None)


class ListTransactionsResponse(Message, api=ApiKey.LIST_TRANSACTIONS, versions=range(3), flexible=0):
    class TransactionState(Message):
        transactional_id: str = string()
        producer_id: int = int64()
        transaction_state: str = string()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
