"""LeaveGroup: members leave a classic group, or an administrator removes them.

Version 3 takes several members at once, version 5 a reason for each.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class LeaveGroupRequest(Message, api=ApiKey.LEAVE_GROUP, versions=range(6), flexible=4):
    class MemberIdentity(Message):
        member_id: str = string()
        group_instance_id: str | None = string(nullable=True, default=None)
        reason: str | None = string(since=5, nullable=True, default=None, ignorable=True)

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


class LeaveGroupResponse(Message, api=ApiKey.LEAVE_GROUP, versions=range(6), flexible=4):
    class MemberResponse(Message):
        member_id: str = string()
        group_instance_id: str | None = string(nullable=True)
        error_code: int = int16()

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)
