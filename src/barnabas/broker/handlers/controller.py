"""The APIs that nodes of the cluster send to the active controller. NOT_CONTROLLER if this node is not active.

A broker on the node of the active controller takes the same handlers without the network, see ``own_request``.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.broker.access.permissions import cluster
from barnabas.broker.controller.own_request import OwnRequest
from barnabas.broker.controller.requests import decide
from barnabas.broker.requests.api import CONTROLLER, Api, Handle
from barnabas.broker.requests.request import Request
from barnabas.metadata.alter_partition import alter_partition
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.producer_ids import allocate_producer_ids
from barnabas.metadata.registrations import register_controller
from barnabas.metadata.replica_directories import assign_replicas_to_dirs
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest


async def _register_broker(request: Request, message: BrokerRegistrationRequest) -> Message:
    # Two processes cannot use the directories of one node, so a previous process of this node has ended.
    return await request.broker.active.register_broker(message, is_own_node=isinstance(request, OwnRequest))


async def _heartbeat(request: Request, message: BrokerHeartbeatRequest) -> Message:
    answer = await request.broker.active.broker_heartbeat(message)
    if request.broker.life_watch is not None and not isinstance(request, OwnRequest):
        request.broker.life_watch.heard(message.broker_id, message.broker_epoch, request.connection)
    return answer


def _decided(decision: Callable[[ClusterImage, Any, Facts], Decision[Any]]) -> Handle:
    async def handle(request: Request, message: Message) -> Message:
        response: Message = await decide(request.broker, lambda image, facts: decision(image, message, facts))
        return response

    return handle


def _api(key: ApiKey, handle: Handle, behaviour: str) -> Api:
    return Api(key, handle, at=CONTROLLER, needs=cluster(Operation.CLUSTER_ACTION), behaviour=behaviour)


APIS: Final = (
    _api(
        ApiKey.BROKER_REGISTRATION,
        _register_broker,
        "a new process is registered fenced; while the previous process of the broker sends heartbeats, the request is "
        "refused with DUPLICATE_BROKER_REGISTRATION.",
    ),
    _api(
        ApiKey.BROKER_HEARTBEAT,
        _heartbeat,
        "a broker that is silent for a session is fenced; a broker that wants to stop may do so when all its "
        "leaderships have moved.",
    ),
    _api(
        ApiKey.ALTER_PARTITION,
        _decided(alter_partition),
        "the epochs in the request must be the newest; each partition succeeds or fails alone.",
    ),
    _api(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        _decided(lambda image, message, facts: allocate_producer_ids(image, message)),
        "blocks of 1000 producer ids; no block is allocated twice.",
    ),
    _api(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        _decided(assign_replicas_to_dirs),
        "each replica succeeds or fails alone; a replica in an offline directory leaves the ISR.",
    ),
    _api(
        ApiKey.CONTROLLER_REGISTRATION,
        _decided(lambda image, message, facts: register_controller(image, message)),
        "kept in the metadata log, so that a feature is only raised if all controllers support it.",
    ),
)
