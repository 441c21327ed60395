"""DescribeGroups: the state and the members of classic groups, as tools show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.coordinator.classic.group import ClassicGroup, GroupState
from barnabas.model import errors
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

ERROR_SINCE: Final = 6  # version of DescribeGroups in which an unknown group is an error, not a dead group

DescribedGroup = DescribeGroupsResponse.DescribedGroup


def describe_groups(groups: Mapping[str, Any], message: DescribeGroupsRequest, version: int) -> list[DescribedGroup]:
    return [_described(group_id, groups.get(group_id), version) for group_id in message.groups]


def _described(group_id: str, group: Any, version: int) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= ERROR_SINCE:
            described.error_code = errors.GROUP_ID_NOT_FOUND.code
            described.error_message = f"there is no {'' if group is None else 'classic '}group {group_id!r}"
        return described
    is_stable = group.state is GroupState.STABLE
    protocol = group.protocol or ""
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if is_stable else "",
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # During a rebalance the assignments are not known.
                member_metadata=member.metadata(protocol) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )
