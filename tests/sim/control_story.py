"""Three nodes in virtual time, told as a story: who votes, who is active, who is fenced, and how one asks them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from waiting import until_async

from barnabas.broker.node.node import Node
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.versions import agree
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest

VIRTUAL_SECONDS_MAX = 600.0
ALL = (1, 2, 3)


def story(tell: Callable[[SimulatedCluster], Coroutine[Any, Any, None]], **more: Any) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, **more)
        await cluster.start_all()
        await until_async(lambda: voters(cluster) == {ALL[: len(cluster.hosts)]})
        await tell(cluster)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def voters(cluster: SimulatedCluster) -> set[tuple[int, ...]]:
    return {node.services.raft.voters.ids for node in cluster.nodes.values()}


def active(cluster: SimulatedCluster) -> int:
    """The active controller, or -1."""
    found = [number for number, node in cluster.nodes.items() if node.services.controller.is_active]
    return found[0] if len(found) == 1 else -1


def others(cluster: SimulatedCluster, *but: int) -> list[int]:
    return [number for number in cluster.nodes if number not in but]


def is_fenced(node: Node, number: int) -> bool:
    return node.services.image.brokers[number].is_fenced


async def ask(number: int, request: Message, *, port: int = BROKER_PORT) -> Any:
    channel = await Channel.connect(f"node{number}", port, client_id="test")
    try:
        ranges = await agree(channel)
        return await channel.send(request, ranges.highest_common(type(request)))
    finally:
        channel.close()


async def create(number: int, name: str, *, partitions: int = 1, replicas: int = 3) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    return (await ask(number, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))).topics[0]


async def has_topic(cluster: SimulatedCluster, name: str) -> None:
    await until_async(lambda: all(name in node.services.image.topics.by_name for node in cluster.nodes.values()))


def partitions_of(cluster: SimulatedCluster, name: str) -> Any:
    return cluster.nodes[min(cluster.nodes)].services.controller.image.topics.by_name[name].partitions
