"""SyncGroup: the leader of a classic group sends the assignment; each member receives its part.

Versions: 0–5.
Behaviour: as Kafka's. Version 5 must contain the protocol that was chosen, or null.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, GROUP_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_SINCE: Final = 5


async def handle(request: Request, message: SyncGroupRequest) -> SyncGroupResponse:
    if request.version >= PROTOCOL_SINCE and (message.protocol_type is None or message.protocol_name is None):
        raise ApiError(errors.INCONSISTENT_GROUP_PROTOCOL)
    if not message.group_id:
        raise ApiError(errors.INVALID_GROUP_ID)
    response: SyncGroupResponse = await request.broker.groups.ask(
        message.group_id, GroupRequest(message, request.version)
    )
    return response


API: Final = Api(ApiKey.SYNC_GROUP, handle, at=CLIENT, rows_max=GROUP_ROWS_MAX, needs=permissions.group(Operation.READ))
