"""ControllerRegistration: a controller tells the active controller of its endpoints and features."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, string, uint16, uuid


class ControllerRegistrationRequest(Message, api=ApiKey.CONTROLLER_REGISTRATION, versions=range(1), flexible=0):
    class Listener(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Message):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


class ControllerRegistrationResponse(Message, api=ApiKey.CONTROLLER_REGISTRATION, versions=range(1), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
