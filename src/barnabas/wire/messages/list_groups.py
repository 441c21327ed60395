"""ListGroups: tools ask a broker for the groups it coordinates.

Version 4 filters by state, version 5 by type.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class ListGroupsRequest(Message, api=ApiKey.LIST_GROUPS, versions=range(6), flexible=3):
    states_filter: list[str] = array(string, since=4)
    types_filter: list[str] = array(string, since=5)


class ListGroupsResponse(Message, api=ApiKey.LIST_GROUPS, versions=range(6), flexible=3):
    class ListedGroup(Message):
        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string(since=4, ignorable=True)
        group_type: str = string(since=5, ignorable=True)

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
