"""BrokerRegistration: a starting broker registers with the controller and receives its epoch.

Version 2 adds log directories, version 3 the epoch of the last clean shutdown, version 4 features at level zero.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(Message, api=ApiKey.BROKER_REGISTRATION, versions=range(5), flexible=0):
    class Listener(Message):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Message):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable=True)
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[Uuid] = array(uuid, since=2, ignorable=True)
    previous_broker_epoch: int = int64(since=3, default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, api=ApiKey.BROKER_REGISTRATION, versions=range(5), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
