"""EndTxn: a producer commits or aborts its transaction.

From version 5 on (transactions of version 2) every end raises the epoch, and the answer carries it.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api=ApiKey.END_TXN, versions=range(6), flexible=3):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api=ApiKey.END_TXN, versions=range(6), flexible=3):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1, ignorable=True)
    producer_epoch: int = int16(since=5, default=-1, ignorable=True)
