"""ListGroups: the groups whose coordinator is this broker.

Versions: 0–5.
Behaviour: as Kafka's. Filters by state and by type ignore case.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.security.acl import ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(request: Request, message: ListGroupsRequest) -> ListGroupsResponse:
    answers = await request.broker.groups.ask_all(GroupRequest(message, request.version))
    return ListGroupsResponse(groups=[group for listed in answers for group in listed])


API: Final = Api(
    ApiKey.LIST_GROUPS,
    handle,
    at=CLIENT,
    rows_max=FEW_ROWS_MAX,
    needs=permissions.listed("groups", "group_id", ResourceType.GROUP),
)
