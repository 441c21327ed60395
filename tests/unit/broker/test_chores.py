"""Periodic work of a broker: scheduled again after any exception, and finished when the broker stops."""

from __future__ import annotations

import asyncio

from barnabas.broker.node.chores import Chores
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import SimulatedClock
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timers


def simulated() -> tuple[SimulatedLoop, Chores]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop, Chores(Timers(SimulatedClock(loop)))


def test_work_that_raises_is_reported_and_runs_again() -> None:
    async def main() -> tuple[list[str], int]:
        loop, chores = simulated()
        reports: list[str] = []
        loop.set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        runs = 0

        async def work() -> None:
            nonlocal runs
            runs += 1
            if runs == 1:
                raise KeyError("a mistake")
            if runs == 2:
                raise DiskFailure("/data", "Input/output error")

        chores.every(500, "retention", work)
        await asyncio.sleep(2.1)
        await chores.stop()
        return reports, runs

    assert simulate(main) == (["retention"], 4)


def test_a_stop_waits_for_the_work_and_schedules_no_more() -> None:
    async def main() -> int:
        _, chores = simulated()
        ended = 0

        async def work() -> None:
            nonlocal ended
            await asyncio.sleep(1)
            ended += 1

        chores.every(500, "checkpoint", work)
        await asyncio.sleep(0.6)
        await chores.stop()
        assert ended == 1
        await asyncio.sleep(10)
        return ended

    assert simulate(main) == 1
