"""ShareGroupHeartbeat: a member of a share group joins, stays and leaves, and gets its partitions.

Versions: 1.
Behaviour: as Kafka's. State of share-partitions that a subscription needs is created before the answer.
Differs from Kafka: the answer to the heartbeat that created the state has the assignment; in Kafka the next one has it.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators import share_groups
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


async def handle(request: Request, message: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    try:
        share_groups.check_enabled(request.broker)
        return await share_groups.heartbeat(
            request.broker,
            GroupRequest(
                message,
                request.version,
                client_id=request.header.client_id or "",
                client_host=f"/{request.connection.peer[0]}",
            ),
        )
    except ApiError as error:
        return ShareGroupHeartbeatResponse(error_code=error.error.code, error_message=error.message)


def _needs(request: GuardedRequest, message: ShareGroupHeartbeatRequest) -> None:
    """READ on the group and DESCRIBE on each topic of the subscription."""
    request.require(Operation.READ, ResourceType.GROUP, message.group_id)
    for name in message.subscribed_topic_names or ():
        request.require(Operation.DESCRIBE, ResourceType.TOPIC, name)


API: Final = Api(ApiKey.SHARE_GROUP_HEARTBEAT, handle, at=CLIENT, needs=_needs)
