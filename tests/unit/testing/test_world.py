"""The parts of a simulated world."""

from __future__ import annotations

import asyncio

from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import START_OF_TIME_MS, SimulatedClock, simulated_world
from barnabas.world.disk import replace


def test_a_world_is_the_same_from_the_same_seed() -> None:
    async def main() -> list[object]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        world = simulated_world(loop, "broker-1")
        world.disk.make_directory("/data")
        await replace(world.disk, "/data/file", world.entropy.token(10))
        assert await world.workers.run(divmod, 7, 2) == (3, 1)
        await world.workers.close()
        return [
            world.entropy.uuid(),
            world.entropy.below(1000),
            world.clock.monotonic_ns(),
            world.disk.read_all("/data/file", size_bytes_max=10),
            loop.trace_hash(),
        ]

    assert simulate(main, seed=3) == simulate(main, seed=3)


def test_the_clock_reads_virtual_time_and_may_be_wrong_about_the_wall() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        clock = SimulatedClock(loop)
        clock.on_jump(lambda: None)()
        assert clock.wall_ms() == START_OF_TIME_MS
        await asyncio.sleep(2.5)
        assert clock.wall_ms() == START_OF_TIME_MS + 2500
        assert clock.monotonic_ms() == 2500
        assert clock.monotonic_ns() == 2_500_000_000
        clock.wall_skew_ms = -3_600_000
        assert clock.wall_ms() == START_OF_TIME_MS + 2500 - 3_600_000

    simulate(main)
