"""A broker that is taken out of the cluster while it runs, or whose place another process has taken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from waiting import until_async

from barnabas.broker.node.node import Node
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import ClusterImage
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

VIRTUAL_SECONDS_MAX = 600.0


async def ask(number: int, request: Message, version: int) -> Any:
    channel = await Channel.connect(f"node{number}", BROKER_PORT, client_id="test")
    try:
        return await channel.send(request, version)
    finally:
        channel.close()


async def make_topic(number: int, *, replicas: int) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=replicas)
    (row,) = (await ask(number, CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)).topics
    assert row.error_code == 0, row.error_message


async def write(cluster: SimulatedCluster, *values: bytes) -> None:
    settings = ProducerSettings(bootstrap_servers=cluster.bootstrap_servers)
    async with Producer(settings, world=cluster.worlds[1]) as producer:
        for number, value in enumerate(values):
            await producer.send("t", value, partition=number % 3)


async def read(cluster: SimulatedCluster, count: int) -> list[bytes]:
    found: list[bytes] = []
    settings = ConsumerSettings(bootstrap_servers=cluster.bootstrap_servers)
    async with Consumer(settings, world=cluster.worlds[1]) as consumer:
        await consumer.assign([TopicPartition("t", index) for index in range(3)])
        while len(found) < count:
            found += [bytes(record.value or b"") for record in await consumer.poll(timeout_ms=1000)]
    return sorted(found)


def in_sync(node: Node) -> list[tuple[int, ...]]:
    return [tuple(sorted(each.isr)) for each in node.services.image.topics.by_name["t"].partitions]


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_broker_that_is_unregistered_while_it_runs_registers_again(brokers: int) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=brokers)
        await cluster.start_all()
        await make_topic(1, replicas=brokers)
        await write(cluster, b"a", b"b", b"c")
        first = cluster.nodes[1].services.image.brokers[1].epoch
        assert (await ask(1, UnregisterBrokerRequest(broker_id=1), 0)).error_code == 0

        def is_back() -> bool:
            found = cluster.nodes[brokers].services.image.brokers.get(1)
            return found is not None and found.epoch > first and not found.is_fenced

        await until_async(is_back)
        everybody = tuple(range(1, brokers + 1))
        await until_async(lambda: set(in_sync(cluster.nodes[1])) == {everybody})
        await write(cluster, b"d", b"e", b"f")
        assert await read(cluster, 6) == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert not cluster.nodes[1].failed.is_set()
        # What it leaves behind on its disk is of its last registration, so that it is trusted after a clean stop.
        last = cluster.nodes[1].services.image.brokers[1].epoch
        node = cluster.nodes[1]
        await cluster.stop(1)
        assert last > first
        assert (
            f'"brokerEpoch":{last}'
            in node.world.disk.read_all(
                f"{node.settings.log_dirs[0]}/.kafka_cleanshutdown", size_bytes_max=1000
            ).decode()
        )
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_broker_that_is_unregistered_can_be_stopped_at_once() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=3)
        await cluster.start_all()
        await ask(1, UnregisterBrokerRequest(broker_id=3), 0)
        loop = asyncio.get_running_loop()
        start = loop.time()
        await cluster.stop(3)
        assert loop.time() - start < 2.5
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_broker_whose_place_was_taken_ends() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=3)
        await cluster.start_all()
        replaced = cluster.nodes[3]
        (leader,) = [node for node in cluster.nodes.values() if node.services.controller.is_active]

        def taken(image: ClusterImage) -> Decision[None]:
            record = image.brokers[3].record()
            record.incarnation_id = Uuid(b"another process.")
            record.broker_epoch = image.offset + 1
            return Decision([record], None)

        await leader.services.controller.submit(taken)
        await until_async(replaced.failed.is_set)
        assert not any(node.failed.is_set() for node in cluster.nodes.values() if node is not replaced)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)
