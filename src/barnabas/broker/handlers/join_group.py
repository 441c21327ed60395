"""JoinGroup: a member joins a classic group; the response is sent when all members have joined.

Versions: 0–9.
Behaviour: as Kafka's. While a join waits, no other request of its connection is read.
Differs from Kafka: metadata that no group's record could hold is refused at once with MESSAGE_TOO_LARGE.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

NULL_PROTOCOL_SINCE: Final = 7


async def handle(request: Request, message: JoinGroupRequest) -> JoinGroupResponse:
    groups = request.broker.groups
    client_id = request.header.client_id or ""
    try:
        if not message.group_id:
            raise ApiError(errors.INVALID_GROUP_ID)
        response: JoinGroupResponse = await groups.ask(
            message.group_id,
            GroupRequest(
                message,
                request.version,
                client_id=client_id,
                client_host=f"/{request.connection.peer[0]}",
                new_member_id="" if message.member_id else groups.new_member_id(message.group_instance_id or client_id),
                may_describe=None if request.asker is None else request.asker.may_describe,
            ),
        )
    except ApiError as error:
        response = JoinGroupResponse(error_code=error.error.code, member_id=message.member_id, protocol_name=None)
    if response.protocol_name is None and request.version < NULL_PROTOCOL_SINCE:
        response.protocol_name = ""
    return response


API: Final = Api(ApiKey.JOIN_GROUP, handle, at=CLIENT, rows_max=FEW_ROWS_MAX, needs=permissions.group(Operation.READ))
