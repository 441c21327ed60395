"""DescribeGroups: tools ask for the state and the members of classic groups.

Version 3 adds authorised operations, version 4 static members, version 6 an error message for an unknown group.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, binary, boolean, int16, int32, string


class DescribeGroupsRequest(Message, api=ApiKey.DESCRIBE_GROUPS, versions=range(7), flexible=5):
    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(since=3)


class DescribeGroupsResponse(Message, api=ApiKey.DESCRIBE_GROUPS, versions=range(7), flexible=5):
    class DescribedGroup(Message):
        error_code: int = int16()
        error_message: str | None = string(since=6, nullable=True, default=None)
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()
        members: list[DescribeGroupsResponse.DescribedGroupMember] = array("DescribedGroupMember")
        authorized_operations: int = int32(since=3, default=-(2**31))

    class DescribedGroupMember(Message):
        member_id: str = string()
        group_instance_id: str | None = string(since=4, nullable=True, default=None, ignorable=True)
        client_id: str = string()
        client_host: str = string()
        member_metadata: bytes = binary()
        member_assignment: bytes = binary()

    throttle_time_ms: int = int32(since=1, ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
