"""LeaveGroup: members leave a classic group, or an administrator removes them.

Versions: 0–5.
Behaviour: as Kafka's. Up to version 2 a request has one member, and its error is that of the response.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

MEMBERS_SINCE: Final = 3


async def handle(request: Request, message: LeaveGroupRequest) -> LeaveGroupResponse:
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    if request.version < MEMBERS_SINCE:
        message.members = [LeaveGroupRequest.MemberIdentity(member_id=message.member_id)]
    try:
        response: LeaveGroupResponse = await request.broker.groups.ask(
            message.group_id, GroupRequest(message, request.version)
        )
    except ApiError as error:
        if error.error is not errors.UNKNOWN_MEMBER_ID:
            raise
        response = LeaveGroupResponse(
            members=[
                LeaveGroupResponse.MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=errors.UNKNOWN_MEMBER_ID.code,
                )
                for each in message.members
            ]
        )
    if request.version < MEMBERS_SINCE:
        row_code = response.members[0].error_code if response.members else 0  # without a row the member has left
        return LeaveGroupResponse(error_code=response.error_code or row_code)
    return response


API: Final = Api(
    ApiKey.LEAVE_GROUP,
    handle,
    at=CLIENT,
    portions=(Portions("members", "members"),),
    needs=permissions.group(Operation.READ),
)
