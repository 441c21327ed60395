"""DeleteGroups: delete groups without members, with their committed offsets.

Versions: 0–2.
Behaviour: as Kafka's. Each group succeeds or fails alone.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.coordinators import share_groups
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(message.groups_names):
        one = GroupRequest(DeleteGroupsRequest(groups_names=[group_id]), request.version)
        try:
            await _delete_share_state(request, group_id)
            response.results += await request.broker.groups.ask(group_id, one)
        except ApiError as error:
            response.results.append(
                DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error.error.code)
            )
    return response


async def _delete_share_state(request: Request, group_id: str) -> None:
    """Delete the state of a share group's share-partitions first; nothing for groups of other types."""
    try:
        failed = await share_groups.delete(request.broker, group_id, None)
    except ApiError as error:
        if error.error is errors.GROUP_ID_NOT_FOUND:
            return
        raise
    if failed:
        raise next(iter(failed.values()))


_ROWS: Final = permissions.Rows(
    "groups_names",
    Operation.DELETE,
    ResourceType.GROUP,
    DeleteGroupsResponse,
    "results",
    lambda row, error: DeleteGroupsResponse.DeletableGroupResult(group_id=row, error_code=error.code),
    permissions.itself,
)


API: Final = Api(
    ApiKey.DELETE_GROUPS,
    handle,
    at=CLIENT,
    portions=(Portions("groups_names", "results"),),
    needs=_ROWS.check,
    audit=lambda message: message.groups_names,
)
