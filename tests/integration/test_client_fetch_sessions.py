"""The fetch sessions that a consumer leaves at a broker: one, however often its connections break."""

from __future__ import annotations

import asyncio

from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings, TopicPartition
from barnabas.client.offsets import Start
from barnabas.testing import Broker

BREAKS = 6


async def cut_connections(broker: Broker) -> None:
    for listener in broker.node.listeners:
        for connection in list(listener._connections):
            connection.abort()


def test_a_consumer_whose_connections_break_has_one_fetch_session() -> None:
    async def work(broker: Broker) -> None:
        servers = (broker.bootstrap_servers,)
        async with (
            Producer(ProducerSettings(bootstrap_servers=servers)) as producer,
            Consumer(ConsumerSettings(bootstrap_servers=servers)) as consumer,
        ):
            await producer.send("t", b"0")
            await consumer.assign({TopicPartition("t", 0): Start.at(0)})
            assert len(await consumer.poll(timeout_ms=20_000)) == 1
            for number in range(1, BREAKS + 1):
                await asyncio.to_thread(broker.run, cut_connections(broker))
                await producer.send("t", b"%d" % number)
                records = await consumer.poll(timeout_ms=20_000)
                assert [record.value for record in records] == [b"%d" % number]
            assert len(broker.node.services.fetch_sessions) == 1

    with Broker() as broker:
        asyncio.run(work(broker))


def test_a_consumer_that_closes_leaves_no_fetch_session() -> None:
    async def work(broker: Broker) -> None:
        servers = (broker.bootstrap_servers,)
        async with Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
            await producer.send("t", b"0")
        async with Consumer(ConsumerSettings(bootstrap_servers=servers)) as consumer:
            await consumer.assign({TopicPartition("t", 0): Start.at(0)})
            assert len(await consumer.poll(timeout_ms=20_000)) == 1
            assert len(broker.node.services.fetch_sessions) == 1
        assert len(broker.node.services.fetch_sessions) == 0

    with Broker() as broker:
        asyncio.run(work(broker))
