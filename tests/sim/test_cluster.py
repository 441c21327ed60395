"""Whole clusters in virtual time, from seeds: brokers crash, freeze, lose power and each other, and nothing is lost.

Our own producers write to every partition all the while, with acks=all and idempotence. After each run the cluster is
healed, and every record that was acknowledged must be there once, in its producer's order, on every replica. A failing
seed prints the command that tells it again.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest
from cluster_story import Story, Writer, tell
from seeds import fresh_seeds

SEEDS = max(1, int(os.environ.get("BARNABAS_SIM_SEEDS", "40")) * 2 // 5)
PRODUCERS = 2


class Writing(Story):
    async def live(self) -> None:
        await self.create_topic()
        writers = [Writer(f"w{number}", Random(self.chance.random())) for number in range(PRODUCERS)]
        async with asyncio.TaskGroup() as group:
            for writer in writers:
                group.create_task(self.write(writer))
            await self.trouble()
            await self.calm()
            for writer in writers:
                writer.is_over = True
        await self.calm()
        await self.check(writers)

    async def check(self, writers: list[Writer]) -> None:
        found = await self.read_all()
        for writer in writers:
            for value, (partition, offset) in writer.acknowledged.items():
                assert found[partition].get(offset) == value, f"{value[:20]!r} at {partition}/{offset} is lost"
            for partition, values in writer.sent.items():
                mine = [
                    value
                    for _, value in sorted(found[partition].items())
                    if value.startswith(f"{writer.name}/".encode())
                ]
                assert len(set(mine)) == len(mine), f"{writer.name} has doubles in {partition}"
                order = {value: place for place, value in enumerate(values)}
                places = [order[value] for value in mine]
                assert places == sorted(places), f"{writer.name} is out of order in {partition}"
        assert sum(len(writer.acknowledged) for writer in writers) > 0
        await self.until_alike()


def tell_writing(seed: int, *, loses_power: bool, is_flushed: bool = False) -> str:
    return tell(seed, lambda: Writing(seed, loses_power=loses_power, is_flushed=is_flushed), __file__)


@pytest.mark.parametrize("seed", fresh_seeds(0, SEEDS))
def test_crashes_lose_nothing(seed: int) -> None:
    tell_writing(seed, loses_power=False)


@pytest.mark.parametrize("seed", fresh_seeds(1, SEEDS))
def test_power_cuts_lose_nothing_that_was_flushed(seed: int) -> None:
    tell_writing(seed, loses_power=True, is_flushed=True)


@pytest.mark.parametrize("seed", fresh_seeds(2, SEEDS))
def test_a_power_cut_of_one_loses_nothing_that_the_others_have(seed: int) -> None:
    tell_writing(seed, loses_power=True)


def test_one_seed_gives_one_trace() -> None:
    assert tell_writing(7, loses_power=False) == tell_writing(7, loses_power=False)
