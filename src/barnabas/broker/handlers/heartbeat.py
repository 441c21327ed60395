"""Heartbeat: a member of a classic group keeps its session alive and learns whether it must join again.

Versions: 0–4.
Behaviour: as Kafka's. While the coordinator is loading, every heartbeat succeeds.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: Request, message: HeartbeatRequest) -> HeartbeatResponse:
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    try:
        response: HeartbeatResponse = await request.broker.groups.ask(
            message.group_id, GroupRequest(message, request.version)
        )
    except ApiError as error:
        if error.error is errors.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return response


API: Final = Api(ApiKey.HEARTBEAT, handle, at=CLIENT, needs=permissions.group(Operation.READ))
