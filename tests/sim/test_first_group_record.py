"""A fresh group on a fresh broker of the development profile: nothing on the way to its first record waits for a clock.

In virtual time only waiting takes time, so what is measured is what the protocol makes a consumer wait; what the
machine needs besides is a row of `python -m bench`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world

SETTINGS = {**DEVELOPMENT, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/data"}
FIRST_RECORD_MS_MAX = 300


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_fresh_group_has_its_first_record_within_300_milliseconds(protocol: Any) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        world = simulated_world(loop, 1)
        node = Node(world, BrokerSettings.of(SETTINGS))
        await node.start()
        servers = (node.bootstrap_servers,)
        async with Producer(ProducerSettings(bootstrap_servers=servers), world=world) as producer:
            await producer.send("t", b"v")
        settings = ConsumerSettings(
            bootstrap_servers=servers, group_id="g", group_protocol=protocol, auto_offset_reset="earliest"
        )
        started = loop.time()
        async with Consumer(settings, world=world) as consumer:
            await consumer.subscribe(["t"])
            assert [record.value for record in await consumer.poll()] == [b"v"]
            took_ms = (loop.time() - started) * 1000
        await node.stop()
        return took_ms

    assert simulate(story) < FIRST_RECORD_MS_MAX
