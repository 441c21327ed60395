"""DeleteGroups: delete groups without members, with their committed offsets.

Versions: 0–2.
Behaviour: as Kafka's. Each group succeeds or fails alone.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(message.groups_names):
        one = GroupRequest(DeleteGroupsRequest(groups_names=[group_id]), request.version)
        try:
            response.results += await request.broker.groups.ask(group_id, one)
        except ApiError as error:
            response.results.append(
                DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error.error.code)
            )
    return response


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
