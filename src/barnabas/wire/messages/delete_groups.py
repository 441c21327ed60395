"""DeleteGroups: an administrator deletes groups that have no members."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string


class DeleteGroupsRequest(Message, api=ApiKey.DELETE_GROUPS, versions=range(3), flexible=2):
    groups_names: list[str] = array(string)


class DeleteGroupsResponse(Message, api=ApiKey.DELETE_GROUPS, versions=range(3), flexible=2):
    class DeletableGroupResult(Message):
        group_id: str = string()
        error_code: int = int16()

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
