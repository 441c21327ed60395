"""AllocateProducerIds: a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message, api=ApiKey.ALLOCATE_PRODUCER_IDS, versions=range(1), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(Message, api=ApiKey.ALLOCATE_PRODUCER_IDS, versions=range(1), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
