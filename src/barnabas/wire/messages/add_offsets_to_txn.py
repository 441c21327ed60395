"""AddOffsetsToTxn: a producer announces that a group's offsets will be part of its transaction."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api=ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5), flexible=3):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api=ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5), flexible=3):
    throttle_time_ms: int = int32()
    error_code: int = int16()
