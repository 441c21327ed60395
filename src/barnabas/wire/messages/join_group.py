"""JoinGroup: a member enters a classic group or begins its next generation.

The answer comes when all members have joined. Version 4 makes a member come back with its id, version 5 adds static
members, version 9 lets the leader skip the assignment.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, binary, boolean, int16, int32, string


class JoinGroupRequest(Message, api=ApiKey.JOIN_GROUP, versions=range(10), flexible=6):
    class JoinGroupRequestProtocol(Message):
        name: str = string()
        metadata: bytes = binary()

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable=True, default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable=True, default=None, ignorable=True)


class JoinGroupResponse(Message, api=ApiKey.JOIN_GROUP, versions=range(10), flexible=6):
    class JoinGroupResponseMember(Message):
        member_id: str = string()
        group_instance_id: str | None = string(since=5, nullable=True, default=None, ignorable=True)
        metadata: bytes = binary()

    throttle_time_ms: int = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable=True, default=None, ignorable=True)
    protocol_name: str | None = string(nullable=True, nullable_since=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
