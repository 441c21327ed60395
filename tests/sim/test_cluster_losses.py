"""A whole cluster in virtual time, from seeds, that loses all of its nodes at once, or one disk after the other.

Two producers write with acks=all while topics are made. When all processes die at once nothing may be lost, and when
all machines lose their power nothing that was flushed, ``flush.messages=1``: neither records nor topics. Of a lost disk
the others have everything: its node joins as new, fetches everything again, and then the next may lose disk or power.
A failing seed prints the command that tells it again.
"""

from __future__ import annotations

import asyncio
import os

import pytest
from cluster_story import CALM_SECONDS_MAX, Writer, tell
from seeds import fresh_seeds
from test_cluster import Writing

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError

SEEDS = max(1, int(os.environ.get("BARNABAS_SIM_SEEDS", "40")) // 20)
TOPICS_MAX = 8


class Losing(Writing):
    """As :class:`Writing`, with one more program: it makes topics, and remembers which it was told are there."""

    made: list[str]

    async def live(self) -> None:
        self.made = []
        self.is_over = False
        making = asyncio.create_task(self.make_topics())
        await super().live()
        self.is_over = True
        await making

    async def make_topics(self) -> None:
        settings = Settings(bootstrap_servers=self.cluster.bootstrap_servers, request_timeout_ms=5000)
        async with Admin(settings, world=self.world) as admin:
            for number in range(TOPICS_MAX):
                await asyncio.sleep(self.chance.uniform(0, 4))
                if self.is_over:
                    return
                try:
                    await admin.create_topic(NewTopic(f"made-{number}", 1, replication_factor=3))
                except BarnabasError:
                    continue  # it may or may not be there
                self.made.append(f"made-{number}")

    async def check(self, writers: list[Writer]) -> None:
        await super().check(writers)
        end = self.loop.time() + CALM_SECONDS_MAX
        while lost := self.unknown():
            assert self.loop.time() < end, f"unknown: {lost}"
            await asyncio.sleep(0.1)

    def unknown(self) -> list[tuple[int, str]]:
        return [
            (number, name)
            for number, node in self.cluster.nodes.items()
            for name in self.made
            if name not in node.services.image.topics.by_name
        ]


class LosingDisks(Losing):
    """Each of the three disks is lost once; whoever is back and has fetched everything is not the next to lose it."""

    async def trouble(self) -> None:
        for number in self.chance.sample(sorted(self.cluster.hosts), len(self.cluster.hosts)):
            await self.until_whole_for(self.chance.uniform(0.1, 3.0))
            self.faults.append(f"{self.loop.time():.3f} lose_disk {number}")
            await self.lose_disk(number)
            if self.chance.random() < 0.5:
                await self.until_whole_for(self.chance.uniform(0.1, 3.0))
                other = self.chance.choice([each for each in sorted(self.cluster.hosts) if each != number])
                self.faults.append(f"{self.loop.time():.3f} crash {other}")
                await self.crash(other)
        assert self.disks_lost == len(self.cluster.hosts)

    async def until_whole_for(self, seconds: float) -> None:
        """Whole again and some time later, in which a topic may have been made that has to become whole, too."""
        await self.calm()
        await asyncio.sleep(seconds)
        await self.calm()


@pytest.mark.parametrize("is_flushed", [False, True])
@pytest.mark.parametrize("seed", fresh_seeds(14, SEEDS))
def test_crashes_of_all_at_once_lose_nothing(seed: int, is_flushed: bool) -> None:
    tell(seed, lambda: Losing(seed, loses_all=True, is_flushed=is_flushed), __file__)


@pytest.mark.parametrize("seed", fresh_seeds(15, 2 * SEEDS))
def test_power_cuts_of_all_at_once_lose_nothing_that_was_flushed(seed: int) -> None:
    tell(seed, lambda: Losing(seed, loses_all=True, loses_power=True, is_flushed=True), __file__)


@pytest.mark.parametrize("is_flushed", [False, True])
@pytest.mark.parametrize("seed", fresh_seeds(16, SEEDS))
def test_one_lost_disk_after_the_other_loses_nothing(seed: int, is_flushed: bool) -> None:
    story = lambda: LosingDisks(seed, loses_disks=True, loses_power=True, is_flushed=is_flushed)  # noqa: E731
    tell(seed, story, __file__)
