"""SyncGroup: the leader of a classic group hands in the assignment, and every member receives its part.

Version 3 adds static members, version 5 the protocol that was agreed upon.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, binary, int16, int32, string


class SyncGroupRequest(Message, api=ApiKey.SYNC_GROUP, versions=range(6), flexible=4):
    class SyncGroupRequestAssignment(Message):
        member_id: str = string()
        assignment: bytes = binary()

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable=True, default=None)
    protocol_type: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, api=ApiKey.SYNC_GROUP, versions=range(6), flexible=4):
    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(since=5, nullable=True, default=None, ignorable=True)
    assignment: bytes = binary()
