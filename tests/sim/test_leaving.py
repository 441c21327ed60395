"""Brokers that leave: others take over first, all of them know it at once, and nobody waits for who is gone as well."""

from __future__ import annotations

import asyncio

from barnabas.broker.node.broker_life import LEAVE_SILENCE_MS_MAX
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.wire.messages.create_topics import CreateTopicsRequest


async def make_topic(partitions: int) -> None:
    channel = await Channel.connect("node1", BROKER_PORT, client_id="test")
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=partitions, replication_factor=3)
    (row,) = (await channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)).topics
    assert row.error_code == 0, row.error_message
    channel.close()


def test_a_broker_that_leads_much_is_gone_within_a_fraction_of_a_second() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1)
        await cluster.start_all()
        await make_topic(60)
        await asyncio.sleep(3)
        loop = asyncio.get_running_loop()
        for number in (1, 2, 3):
            start = loop.time()
            await cluster.stop(number)
            assert loop.time() - start < 0.7
            watcher = cluster.nodes[1 if number != 1 else 2]
            leaders = {each.leader for each in watcher.services.image.topics.by_name["t"].partitions}
            assert leaders, leaders
            assert not leaders & {number, -1}
            await cluster.start(number)
            await asyncio.sleep(3)
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=600)


def test_brokers_that_leave_together_do_not_wait_long_for_each_other() -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1)
        await cluster.start_all()
        await make_topic(6)
        loop = asyncio.get_running_loop()
        start = loop.time()
        await asyncio.gather(*(cluster.stop(number) for number in (1, 2, 3)))
        assert loop.time() - start < LEAVE_SILENCE_MS_MAX / 1000 + 0.5

    simulate(whole, seed=1, time_s_max=600)
