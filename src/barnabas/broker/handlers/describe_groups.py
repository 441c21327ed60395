"""DescribeGroups: the state and the members of classic groups.

Versions: 0–6.
Behaviour: as Kafka's. A group that does not exist is Dead; since version 6 it is an error.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.authorized_operations import authorized_operations
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse


async def handle(request: Request, message: DescribeGroupsRequest) -> DescribeGroupsResponse:
    response = DescribeGroupsResponse()
    for group_id in message.groups:
        one = GroupRequest(DescribeGroupsRequest(groups=[group_id]), request.version)
        try:
            response.groups += await request.broker.groups.ask(group_id, one)
        except ApiError as error:
            response.groups.append(
                DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error.error.code)
            )
    if message.include_authorized_operations:
        for group in response.groups:
            if group.error_code == errors.NONE.code:
                group.authorized_operations = authorized_operations(request, ResourceType.GROUP, group.group_id)
    return response


_ROWS: Final = permissions.Rows(
    "groups",
    Operation.DESCRIBE,
    ResourceType.GROUP,
    DescribeGroupsResponse,
    "groups",
    lambda row, error: DescribeGroupsResponse.DescribedGroup(group_id=row, error_code=error.code),
    permissions.itself,
)


API: Final = Api(ApiKey.DESCRIBE_GROUPS, handle, at=CLIENT, portions=(Portions("groups", "groups"),), needs=_ROWS.check)
