"""BrokerHeartbeat: a broker tells the controller how far it is and whether it wants to be unfenced or to shut down.

Version 1 adds directories that have failed, version 2 those that are cordoned and take no new replicas.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, api=ApiKey.BROKER_HEARTBEAT, versions=range(3), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[Uuid] = array(uuid, since=1, tag=0)
    cordoned_log_dirs: list[Uuid] | None = array(uuid, since=2, nullable=True, default=None, tag=1)


class BrokerHeartbeatResponse(Message, api=ApiKey.BROKER_HEARTBEAT, versions=range(3), flexible=0):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
