"""Requests that change the cluster: decided by the controller, answered once this broker has caught up with them.

A client that creates a topic here and writes to it at once finds it. The decisions themselves are pure functions in
``barnabas.metadata``; this module gives them their facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

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
SEED_MAX = 2**31


def facts(broker: Services) -> Facts:
    settings = broker.settings
    return Facts(
        cluster_id=broker.cluster_id,
        node_id=broker.broker_id,
        schema=ConfigSchema(
            node_id=broker.broker_id,
            broker_settings=BROKER_SETTINGS,
            group_settings=settings.consumer_groups.group_configs,
            static=settings.given,
        ),
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        delete_topic_enable=settings.delete_topic_enable,
        controller_ids=frozenset(broker.raft.voters.ids),
    )


async def submit(broker: Services, decide: Callable[[ClusterImage, Facts], Decision[R]]) -> R:
    known = facts(broker)
    response = await broker.controller.submit(lambda image: decide(image, known))
    await broker.replicas.caught_up(broker.controller.image.offset)
    return response


def placement_seed(broker: Services) -> int:
    """Where the controller begins to place partitions: a matter of chance, so that no broker is always first."""
    return broker.world.entropy.below(SEED_MAX)


async def create_topics(broker: Services, message: CreateTopicsRequest) -> CreateTopicsResponse:
    """For this broker's own needs; wherever the controller is."""
    response = await broker.controller_link.ask(message, timeout_ms=message.timeout_ms)
    assert isinstance(response, CreateTopicsResponse)
    if broker.controller.is_active:
        await broker.replicas.caught_up(broker.controller.image.offset)
    return response


def fresh_ids(broker: Services) -> Iterator[Uuid]:
    while True:
        yield broker.world.entropy.uuid()


async def allocate_producer_ids(broker: Services, broker_epoch: int) -> tuple[int, int]:
    """The first id of a fresh block, and how many it has."""
    request = AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker_epoch)
    response = await broker.controller_link.ask(request)
    assert isinstance(response, AllocateProducerIdsResponse)
    raise_for_error(response)
    return response.producer_id_start, response.producer_id_len
