"""Heartbeat: a member of a classic group says that it is alive and hears whether it must join again.

Version 3 adds static members.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, int16, int32, string


class HeartbeatRequest(Message, api=ApiKey.HEARTBEAT, versions=range(5), flexible=4):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=True, default=None)


class HeartbeatResponse(Message, api=ApiKey.HEARTBEAT, versions=range(5), flexible=4):
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
