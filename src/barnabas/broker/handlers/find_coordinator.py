"""FindCoordinator: the broker that leads the partition in which a group's or a transactional id's state is kept.

Versions: 0–6.
Behaviour: the topic of group offsets, or of transactions, is made when the first client asks; until it is there the
client asks again. The partition is Java's hash of the id, modulo the number of partitions.
The key of a share coordinator is "group:topic-id:partition".
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.controller.auto_create import create_missing
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_BROKER, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
KEYS_SINCE: Final = 4
TOPICS: Final = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_STATE_TOPIC}


async def handle(request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = message.coordinator_keys if request.version >= KEYS_SINCE else [message.key]
    found = [await _find(request, key, message.key_type) for key in keys]
    if request.version >= KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def refuse(message: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=error.error.code,
        error_message=error.message,
        coordinators=[_refused(key, error.error) for key in message.coordinator_keys],
    )


async def _find(request: Request, key: str, key_type: int) -> FindCoordinatorResponse.Coordinator:
    broker = request.broker
    name = TOPICS.get(key_type)
    if name is None:
        return _refused(key, errors.INVALID_REQUEST)
    if name not in broker.image.topics.by_name:
        await create_missing(broker, [name])
    topic = broker.image.topics.by_name.get(name)
    if topic is None:
        return _refused(key, errors.COORDINATOR_NOT_AVAILABLE)
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    endpoint = broker.endpoint_of(leader, request.connection)
    if endpoint is None:
        return _refused(key, errors.COORDINATOR_NOT_AVAILABLE)
    host, port, _ = endpoint
    return FindCoordinatorResponse.Coordinator(key=key, node_id=leader, host=host, port=port)


def _refused(key: str, error: errors.WireError) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=NO_BROKER, host="", port=-1, error_code=error.code, error_message=error.text
    )


def _needs(request: GuardedRequest, message: FindCoordinatorRequest) -> Message | None:
    """DESCRIBE on each group or transactional id; CLUSTER_ACTION for other types of keys."""
    kind = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}.get(message.key_type)
    if kind is None:
        request.require_cluster(Operation.CLUSTER_ACTION)
        return None
    if request.version < KEYS_SINCE:
        request.require(Operation.DESCRIBE, kind, message.key)
        return None
    may = request.asker.may
    allowed, denied = permissions.parted(message.coordinator_keys, lambda key: may(Operation.DESCRIBE, kind, key))
    refused = [_refused(key, ERRORS[kind]) for key in denied]
    return permissions.split(
        request, message, "coordinator_keys", allowed, refused, FindCoordinatorResponse, "coordinators"
    )


API: Final = Api(
    ApiKey.FIND_COORDINATOR,
    handle,
    at=CLIENT,
    portions=(Portions("coordinator_keys", "coordinators"),),
    needs=_needs,
    refuse=refuse,
)
