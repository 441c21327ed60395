"""Random appends, elections, crashes and cuts over three replicas: what was acknowledged is never lost.

After every step the committed parts of all logs must agree, whoever leads must have all that was ever committed, and
what is committed must only grow.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "unit" / "replication")]

from trio import Trio, content  # noqa: E402

from barnabas.model.errors import ApiError  # noqa: E402
from barnabas.testing.loop import simulate  # noqa: E402

STEPS = 60
SEEDS = 12


class Model:
    """What must hold, and what clients were promised."""

    def __init__(self, trio: Trio) -> None:
        self.trio = trio
        self.committed: dict[int, tuple[int, int]] = {}  # epoch and checksum by offset
        self.acknowledged: dict[int, int] = {}  # checksum by offset
        self.tasks: set[asyncio.Task[None]] = set()
        self.count = 0

    def check(self) -> None:
        for broker in self.trio.brokers.values():
            if not broker.is_alive:
                continue
            partition = broker.partition
            for offset, epoch, crc in content(partition, end=partition.log.high_watermark):
                assert self.committed.setdefault(offset, (epoch, crc)) == (epoch, crc), (broker.id, offset)
        leader = self.trio.brokers[self.trio.state.leader]
        if leader.is_alive and leader.seen is self.trio.image and leader.partition.is_leader:
            held = {offset: (epoch, crc) for offset, epoch, crc in content(leader.partition)}
            missing = {offset for offset, batch in self.committed.items() if held.get(offset) != batch}
            assert not missing, f"{leader.id} leads and lacks {sorted(missing)}"
        for offset, crc in self.acknowledged.items():
            assert self.committed[offset][1] == crc

    def append(self) -> None:
        leaders = [each for each in self.trio.brokers.values() if each.is_alive and each.partition.is_leader]
        if not leaders:
            return
        partition = self.trio.random.choice(leaders).partition  # perhaps one that does not lead any more
        self.count += 1
        try:
            offset = self.trio.append(partition, b"%d" % self.count)
        except ApiError:
            return
        crc = next(crc for base, _, crc in content(partition) if base == offset)
        task = asyncio.get_running_loop().create_task(self._hear(partition, offset, crc), name=f"append:{self.count}")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _hear(self, partition: Any, offset: int, crc: int) -> None:
        if await partition.acknowledged(offset):
            assert self.acknowledged.setdefault(offset, crc) == crc, "two records were acknowledged at one offset"


class Chaos:
    def __init__(self, trio: Trio, *, loses_power: bool) -> None:
        self.trio = trio
        self.model = Model(trio)
        self._loses_power = loses_power

    async def run(self) -> None:
        random = self.trio.random
        self.trio.delay_ms_max = random.choice((1, 20, 400))
        steps = [self.append, self.append, self.append, self.wait, self.wait_long, self.elect, self.cut, self.heal]
        steps += [self.crash, self.restart, self.restart, self.one_way]
        for _ in range(STEPS):
            await random.choice(steps)()
            self.model.check()
        await self.heal()
        for broker in self.trio.brokers.values():
            if not broker.is_alive:
                await self._start(broker.id)
        await self.elect()
        await self.trio.settled(120_000)
        self.model.check()
        assert self.trio.isr == [1, 2, 3]
        assert len({tuple(content(broker.partition)) for broker in self.trio.brokers.values()}) == 1
        for broker in self.trio.brokers.values():
            assert broker.partition.log.high_watermark == broker.partition.log.end_offset

    async def append(self) -> None:
        for _ in range(self.trio.random.randrange(1, 5)):
            self.model.append()

    async def wait(self) -> None:
        await self.trio.settled(self.trio.random.randrange(1, 1000))

    async def wait_long(self) -> None:
        await self.trio.settled(self.trio.random.randrange(1, 70_000))

    async def elect(self) -> None:
        """A clean election, of somebody in sync who is alive."""
        alive = [each for each in self.trio.state.isr if self.trio.brokers[each].is_alive]
        if alive:
            self.trio.change(leader=self.trio.random.choice(alive))
            await self.trio.settled(self.trio.random.randrange(1, 500))

    async def cut(self) -> None:
        self.trio.isolate(self.trio.random.choice(list(self.trio.brokers)))

    async def one_way(self) -> None:
        source, target = self.trio.random.sample([0, *self.trio.brokers], 2)
        self.trio.cuts.add((source, target))

    async def heal(self) -> None:
        self.trio.heal()

    async def crash(self) -> None:
        broker = self.trio.brokers[self.trio.random.choice(list(self.trio.brokers))]
        if not broker.is_alive:
            return
        await broker.stop(loses_power=self._loses_power)
        self.trio.fence(broker)
        rest = [each for each in self.trio.state.isr if each != broker.id]
        if rest and broker.id in self.trio.state.isr:
            leader = self.trio.state.leader
            self.trio.change(leader=rest[0] if leader == broker.id else None, isr=rest)

    async def restart(self) -> None:
        dead = [each.id for each in self.trio.brokers.values() if not each.is_alive]
        if dead:
            await self._start(self.trio.random.choice(dead))

    async def _start(self, broker_id: int) -> None:
        broker = self.trio.brokers[broker_id]
        self.trio.cuts -= {(0, broker_id), (broker_id, 0)}
        self.trio.register(broker)
        await broker.start()
        if self.trio.state.leader == broker_id:
            self.trio.change(leader=broker_id)  # in a new epoch


def play(seed: int, *, loses_power: bool, **topic: Any) -> None:
    async def main() -> None:
        async with Trio(seed, **topic) as trio:
            await Chaos(trio, loses_power=loses_power).run()

    simulate(main, seed=seed, time_s_max=100_000)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_acknowledged_survives_crashes_cuts_and_elections(seed: int) -> None:
    play(seed, loses_power=False)


@pytest.mark.parametrize("seed", range(1000, 1000 + SEEDS // 2))
def test_with_flush_messages_1_it_survives_lost_power_too(seed: int) -> None:
    play(seed, loses_power=True, flush_messages=1)
