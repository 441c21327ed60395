"""The one way from a handler to the controller's decisions, and the requests that a broker itself sends to it.

A decision is a pure function in ``barnabas.metadata``; this module gives it its facts, and the controller writes what
it decides. Handlers for administrators use ``submit``, which also waits until this broker has applied the change: a
client that creates a topic and writes to it at once finds it. Handlers for nodes use ``decide``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from barnabas.broker.controller.link import raise_for_error
from barnabas.broker.requests.services import Services
from barnabas.broker.settings.broker import BROKER_SETTINGS
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.image import ClusterImage
from barnabas.model.ids import Uuid
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

R = TypeVar("R")
SEED_MAX: Final = 2**31


def facts(broker: Services) -> Facts:
    settings = broker.settings
    return Facts(
        cluster_id=broker.cluster_id,
        node_id=broker.broker_id,
        schema=ConfigSchema(
            node_id=broker.broker_id,
            broker_settings=BROKER_SETTINGS,
            group_settings=settings.group_configs,
            static=settings.given,
        ),
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        delete_topic_enable=settings.delete_topic_enable,
        controller_ids=frozenset(broker.raft.voters.ids),
    )


async def decide(broker: Services, decision: Callable[[ClusterImage, Facts], Decision[R]]) -> R:
    """The response of a decision when its records are committed; NOT_CONTROLLER if another node is active."""
    return await broker.controller.submit(decision, facts(broker))


async def submit(broker: Services, decision: Callable[[ClusterImage, Facts], Decision[R]]) -> R:
    """As ``decide``, but the response also waits until this broker has applied the change."""
    response = await broker.controller.submit(decision, facts(broker))
    await broker.replicas.caught_up(broker.controller.image.offset)
    return response


def placement_seed(broker: Services) -> int:
    """A random start for the placement of partitions, so that no broker is always first."""
    return broker.world.entropy.below(SEED_MAX)


def fresh_ids(broker: Services) -> Iterator[Uuid]:
    """Random ids for new topics and ACLs."""
    while True:
        yield broker.world.entropy.uuid()


async def create_topics(broker: Services, message: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create topics that this broker needs itself, wherever the active controller is."""
    response = await broker.controller_link.ask(message, timeout_ms=message.timeout_ms)
    assert isinstance(response, CreateTopicsResponse)
    return response


async def allocate_producer_ids(broker: Services, broker_epoch: int) -> tuple[int, int]:
    """The first id of a new block, and the number of ids in it."""
    request = AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker_epoch)
    response = await broker.controller_link.ask(request)
    assert isinstance(response, AllocateProducerIdsResponse)
    raise_for_error(response)
    return response.producer_id_start, response.producer_id_len
