"""Three nodes from seeds: killed, frozen, cut off, without power, restarted, while topics are made through any of them.

Afterwards everything is healed. Then every topic whose making was acknowledged must be known everywhere, all pictures
of the cluster must be the same, one controller must be active and every broker let in. All the while an epoch of the
quorum has one leader, and nobody's picture goes back. A failing seed is run again with ``BARNABAS_SIM_SEED=n``.
"""

from __future__ import annotations

import asyncio
import os
from random import Random
from typing import Any

import pytest

from barnabas.metadata.loader import snapshot_records
from barnabas.model.errors import BarnabasError
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.versions import agree
from barnabas.wire.messages.create_topics import CreateTopicsRequest

SEEDS = max(1, int(os.environ.get("BARNABAS_SIM_SEEDS", "80")) // 40)
ONLY = os.environ.get("BARNABAS_SIM_SEED")
TROUBLE_SECONDS = 40.0
CALM_SECONDS_MAX = 120.0
CLIENTS = 3
NODES = (1, 2, 3)


class Story:
    def __init__(self, seed: int) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.chance = Random(f"control/{seed}")
        self.cluster = SimulatedCluster(seed)
        self.acknowledged: set[str] = set()
        self.leaders: dict[int, int] = {}  # by epoch
        self.offsets: dict[int, tuple[Any, int]] = {}  # by node: which life, how far
        self.faults: list[str] = []
        self.is_over = False

    async def run(self) -> None:
        await self.cluster.start_all()
        watching = asyncio.create_task(self.watch())
        clients = [asyncio.create_task(self.create_topics(number)) for number in range(CLIENTS)]
        await self.trouble()
        self.is_over = True
        await self.calm()
        await asyncio.gather(*clients)
        await watching
        self.check()
        await self.cluster.stop_all()

    # --- what goes on ---------------------------------------------------------------------------------------------

    async def create_topics(self, client: int) -> None:
        count = 0
        while not self.is_over:
            name = f"topic-{client}-{count}"
            count += 1
            try:
                async with asyncio.timeout(12):
                    if await self.create(self.chance.choice(NODES), name):
                        self.acknowledged.add(name)
            except (BarnabasError, TimeoutError):
                pass  # it may have been made, or not
            await asyncio.sleep(self.chance.uniform(0.05, 0.5))

    async def create(self, node: int, name: str) -> bool:
        channel = await Channel.connect(f"node{node}", BROKER_PORT, client_id="chaos")
        try:
            ranges = await agree(channel)
            topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=8000)
            answer: Any = await channel.send(request, ranges.highest_common(CreateTopicsRequest))
            return bool(answer.topics[0].error_code == 0)
        finally:
            channel.close()

    async def watch(self) -> None:
        while not self.is_over:
            for number, node in self.cluster.nodes.items():
                services = getattr(node, "services", None)
                if services is None or services.raft._engine is None:
                    continue
                if services.raft.is_leader:
                    epoch = services.raft.leader.epoch
                    assert self.leaders.setdefault(epoch, number) == number, f"two leaders in epoch {epoch}"
                life, offset = self.offsets.get(number, (None, -1))
                if life is node:
                    assert services.controller.image.offset >= offset, f"the picture of node {number} went back"
                self.offsets[number] = (node, services.controller.image.offset)
            await asyncio.sleep(0.02)

    # --- trouble --------------------------------------------------------------------------------------------------

    async def trouble(self) -> None:
        end = self.loop.time() + TROUBLE_SECONDS
        while self.loop.time() < end:
            await asyncio.sleep(self.chance.uniform(0.1, 3.0))
            faults = (self.crash, self.crash, self.freeze, self.cut, self.restart, self.all_lose_power)
            fault = self.chance.choices(faults, weights=(3, 3, 3, 3, 2, 1))[0]
            number = self.chance.choice(NODES)
            self.faults.append(f"{self.loop.time():.3f} {fault.__name__} {number}")
            await fault(number)

    async def crash(self, number: int) -> None:
        if number in self.cluster.nodes:
            self.cluster.kill(number, loses_power=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.choice((0.0, 0.2, 4.0)))
        self.cluster.begin(number)

    async def freeze(self, number: int) -> None:
        self.cluster.pause(number)
        await asyncio.sleep(self.chance.choice((0.5, 3.0, 12.0)))
        self.cluster.resume(number)

    async def cut(self, number: int) -> None:
        self.cluster.cut_off(number, one_way=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.choice((0.5, 4.0, 12.0)))
        self.cluster.heal()

    async def restart(self, number: int) -> None:
        node = self.cluster.nodes[number]
        if getattr(node, "_lifecycle", None) is None or node._lifecycle.broker_epoch < 0:
            return  # it is still on its way up
        await self.cluster.stop(number)
        self.cluster.begin(number)

    async def all_lose_power(self, number: int) -> None:
        for each in NODES:
            if each in self.cluster.nodes:
                self.cluster.kill(each, loses_power=True)
        await asyncio.sleep(1)
        for each in NODES:
            self.cluster.begin(each)

    # --- peace ----------------------------------------------------------------------------------------------------

    def is_calm(self) -> bool:
        nodes = list(self.cluster.nodes.values())
        if len(nodes) < len(NODES) or any(getattr(node, "services", None) is None for node in nodes):
            return False
        images = [node.services.controller.image for node in nodes]
        return (
            sum(node.services.controller.is_active for node in nodes) == 1
            and all(sorted(image.brokers) == list(NODES) for image in images)
            and all(not image.brokers[number].is_fenced for image in images for number in NODES)
            and len({image.offset for image in images}) == 1
        )

    async def calm(self) -> None:
        self.cluster.heal()
        for number in NODES:
            self.cluster.resume(number)
        start = self.loop.time()
        while not self.is_calm():
            assert self.loop.time() - start < CALM_SECONDS_MAX, f"no peace after {self.faults}"
            await asyncio.sleep(0.05)

    def check(self) -> None:
        nodes = self.cluster.nodes
        for number, node in nodes.items():
            known = node.services.controller.image.topics.by_name
            lost = sorted(name for name in self.acknowledged if name not in known)
            assert lost == [], f"node {number} does not know {lost}"
        one, two, three = (list(snapshot_records(nodes[number].services.controller.image)) for number in NODES)
        assert one == two == three
        assert self.acknowledged, "nothing was ever acknowledged"


@pytest.mark.parametrize("seed", [int(ONLY)] if ONLY else range(SEEDS))
def test_what_a_controller_acknowledged_is_never_forgotten(seed: int) -> None:
    async def whole() -> None:
        await Story(seed).run()

    simulate(whole, seed=seed, time_s_max=600)
