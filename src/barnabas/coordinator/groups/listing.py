"""ListGroups and DeleteGroups, over the groups of all protocols in one shard.

The group shard calls these with its table of groups; the broker's handlers combine the responses of several shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from barnabas.coordinator.groups.protocol import Group
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

ListedGroup = ListGroupsResponse.ListedGroup
DeletedGroup = DeleteGroupsResponse.DeletableGroupResult


def list_groups(groups: Iterable[Group], message: ListGroupsRequest) -> list[ListedGroup]:
    """The groups that match the filters, which ignore case; an empty filter matches every group."""
    states = {name.lower() for name in message.states_filter}
    types = {name.lower() for name in message.types_filter}
    listed = (_listed(group) for group in groups)
    return [
        group
        for group in listed
        if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
    ]


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.group_type,
    )


def delete_groups(
    groups: Mapping[str, Group],
    message: DeleteGroupsRequest,
    add_tombstones: Callable[[Group, Effects], None],
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
