"""A whole cluster in virtual time, from seeds, whose replicas move between their brokers' directories all the while.

As in ``test_cluster``: producers write with acks=all, brokers crash, freeze, lose power and each other, so leaders
change, followers are cut back, and copies are begun, given up and taken over in the midst of it. Nothing may be lost,
and when all is calm every move that is asked for comes to its end. A failing seed prints the command that tells it
again.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from cluster_story import CALM_SECONDS_MAX, PARTITIONS, TOPIC, Writer, tell
from seeds import fresh_seeds
from test_cluster import Writing

from barnabas.client.admin.client import Admin
from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

SEEDS = max(1, int(os.environ.get("BARNABAS_SIM_SEEDS", "80")) // 40)
HOMES = ("/data/first", "/data/second")
SETTINGS = {"log.dirs": ",".join(HOMES), "log.roll.ms": "500"}  # copies roll, too


class Moving(Writing):
    """One more program moves replicas to and fro."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed, settings=SETTINGS, **options)
        self.begun = 0
        self.is_over = False

    async def live(self) -> None:
        self.moving = asyncio.create_task(self.move())
        await super().live()

    @property
    def admin(self) -> Admin:
        settings = Settings(bootstrap_servers=self.cluster.bootstrap_servers, request_timeout_ms=2000)
        return Admin(settings, world=self.world)

    async def move(self) -> None:
        async with self.admin as admin:
            while not self.is_over:
                await asyncio.sleep(self.chance.choice((0.0, 0.05, 0.5)))
                number = self.chance.choice(sorted(self.cluster.hosts))
                place = TopicPartition(TOPIC, self.chance.randrange(PARTITIONS))
                try:
                    said = await admin.alter_replica_log_dirs(number, {place: self.chance.choice(HOMES)})
                except BarnabasError:
                    continue  # the broker is not to be reached
                self.begun += said[place] is None

    async def check(self, writers: list[Writer]) -> None:
        self.is_over = True
        await self.moving
        assert self.begun, "nothing was moved"
        await self.all_to(HOMES[0])
        await self.all_to(HOMES[1])
        await super().check(writers)
        for number, node in self.cluster.nodes.items():
            assert not node.services.store.offline
            for home in HOMES:
                left = [name for name in self.cluster.disk(number).list(home) if "-future" in name or "-stray" in name]
                assert not left, f"node {number} has {left}"

    async def all_to(self, home: str) -> None:
        places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        async with self.admin as admin:
            for number in sorted(self.cluster.hosts):
                said = await admin.alter_replica_log_dirs(number, dict.fromkeys(places, home))
                assert not any(said.values()), said
        end = self.loop.time() + CALM_SECONDS_MAX
        while elsewhere := self.elsewhere(home):
            assert self.loop.time() < end, f"not in {home}: {elsewhere}"
            await asyncio.sleep(0.1)

    def elsewhere(self, home: str) -> list[tuple[int, str]]:
        """What does not lie there yet, or lies there without the controller's knowledge."""
        found = []
        for number, node in self.cluster.nodes.items():
            services = node.services
            directory_id = services.store.directory_ids[home]
            for index, state in enumerate(services.image.topics.by_name[TOPIC].partitions):
                directory = services.replicas.by_name[TOPIC, index].log.directory
                if directory != f"{home}/{TOPIC}-{index}" or state.directory_of(number) != directory_id:
                    found.append((number, directory))
        return found


@pytest.mark.parametrize("seed", fresh_seeds(22, SEEDS))
def test_crashes_lose_nothing_of_replicas_that_move(seed: int) -> None:
    tell(seed, lambda: Moving(seed), __file__)


@pytest.mark.parametrize("seed", fresh_seeds(23, SEEDS))
def test_power_cuts_lose_nothing_of_replicas_that_move(seed: int) -> None:
    tell(seed, lambda: Moving(seed, loses_power=True, is_flushed=True), __file__)


@pytest.mark.parametrize("seed", fresh_seeds(24, SEEDS))
def test_crashes_of_all_at_once_lose_nothing_of_replicas_that_move(seed: int) -> None:
    tell(seed, lambda: Moving(seed, loses_all=True, loses_power=True, is_flushed=True), __file__)
