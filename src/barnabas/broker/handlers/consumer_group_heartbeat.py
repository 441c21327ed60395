"""ConsumerGroupHeartbeat: a member of a group of the consumer protocol joins, stays, reports and leaves, all in one.

Versions: 0–1.
Behaviour: as Kafka's. The broker assigns the partitions; the answer has them when they are new to the member.
Differs from Kafka: patterns of more than 4096 characters are refused with INVALID_REGULAR_EXPRESSION; topics that a
pattern stands for are found in the same heartbeat where there are few topics, and new ones after a second, not ten.
A static member that did not hear the answer to its join may send it again.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, GROUP_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(request: Request, message: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    groups = request.broker.groups
    try:
        response: ConsumerGroupHeartbeatResponse = await groups.ask(
            message.group_id,
            GroupRequest(
                message,
                request.version,
                client_id=request.header.client_id or "",
                client_host=f"/{request.connection.peer[0]}",
                new_member_id="" if message.member_id else str(request.broker.world.entropy.uuid()),
                may_describe=None if request.asker is None else request.asker.may_describe,
            ),
        )
    except ApiError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.error.code, error_message=error.message)
    return response


def _needs(request: GuardedRequest, message: ConsumerGroupHeartbeatRequest) -> None:
    """READ on the group and DESCRIBE on each topic of the subscription."""
    request.require(Operation.READ, ResourceType.GROUP, message.group_id)
    for name in message.subscribed_topic_names or ():
        request.require(Operation.DESCRIBE, ResourceType.TOPIC, name)


API: Final = Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, handle, at=CLIENT, rows_max=GROUP_ROWS_MAX, needs=_needs)
