"""UnregisterBroker: an administrator removes a broker that will not come back."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, string


class UnregisterBrokerRequest(Message, api=ApiKey.UNREGISTER_BROKER, versions=range(1), flexible=0):
    broker_id: int = int32()


class UnregisterBrokerResponse(Message, api=ApiKey.UNREGISTER_BROKER, versions=range(1), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
