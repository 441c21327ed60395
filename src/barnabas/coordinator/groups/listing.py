"""What tools ask of many groups at once: ListGroups, DescribeGroups, DeleteGroups, over the groups of one shard.

The group shard calls these with its table of groups; the broker's handlers put the answers of several shards together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from barnabas.coordinator.classic.group import ClassicGroup, GroupState
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CLASSIC_TYPE: Final = "classic"
CONSUMER_TYPE: Final = "consumer"
CONSUMER_PROTOCOL: Final = "consumer"
ERROR_SINCE: Final = 6  # of DescribeGroups: an unknown group is an error, not a dead group

ListedGroup = ListGroupsResponse.ListedGroup
DescribedGroup = DescribeGroupsResponse.DescribedGroup
DeletedGroup = DeleteGroupsResponse.DeletableGroupResult


def list_groups(groups: Iterable[Any], message: ListGroupsRequest) -> list[ListedGroup]:
    """Filters are read without regard to case; an empty filter lets everything pass."""
    states = {name.lower() for name in message.states_filter}
    types = {name.lower() for name in message.types_filter}
    listed = (_listed(group) for group in groups)
    return [
        group
        for group in listed
        if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
    ]


def _listed(group: Any) -> ListedGroup:
    if isinstance(group, ClassicGroup):
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC_TYPE,
        )
    return ListedGroup(
        group_id=group.group_id, protocol_type=CONSUMER_PROTOCOL, group_state=group.state, group_type=CONSUMER_TYPE
    )


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
                # While members come and go there is nothing true to say of what they have.
                member_metadata=member.metadata(protocol) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
    )


def delete_groups(
    groups: Mapping[str, Any],
    message: DeleteGroupsRequest,
    add_tombstones: Callable[[Any, Effects], None],
    effects: Effects,
) -> list[DeletedGroup]:
    results = []
    for group_id in dict.fromkeys(message.groups_names):
        group = groups.get(group_id)
        result = DeletedGroup(group_id=group_id)
        try:
            if group is None:
                raise ApiError(errors.GROUP_ID_NOT_FOUND)
            group.check_delete()
            add_tombstones(group, effects)
        except ApiError as error:
            result.error_code = error.error.code
        results.append(result)
    return results
