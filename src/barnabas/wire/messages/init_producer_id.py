"""InitProducerId: a producer asks for its id and epoch, and a transactional one fences its predecessor.

Version 3 lets a producer raise its own epoch. Version 6 (two-phase commit) is not stable in Kafka 4.3 and is left out.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, int64, string


class InitProducerIdRequest(Message, api=ApiKey.INIT_PRODUCER_ID, versions=range(6), flexible=2):
    transactional_id: str | None = string(nullable=True)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)


class InitProducerIdResponse(Message, api=ApiKey.INIT_PRODUCER_ID, versions=range(6), flexible=2):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
