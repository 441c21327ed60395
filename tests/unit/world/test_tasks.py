"""Tasks: a failure is reported, work that must go on is run again, and a component stops what it started."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import SimulatedClock
from barnabas.world.tasks import RETRY_MS, Tasks
from barnabas.world.timers import Timers


def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


def timers() -> Timers:
    return Timers(SimulatedClock(loop()))


async def broken() -> None:
    raise KeyError("a mistake")


def test_a_failed_task_is_reported_to_the_loop_and_to_its_owner() -> None:
    async def main() -> tuple[list[str], list[Exception]]:
        reports, told = [], []
        loop().set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        tasks = Tasks(on_failure=told.append)
        tasks.start(broken(), "fetch:1")
        await tasks.done()
        assert len(tasks) == 0
        return reports, told

    reports, told = simulate(main)
    assert reports == ["fetch:1"]
    assert [type(error) for error in told] == [KeyError]


def test_a_simulation_fails_on_a_failed_task() -> None:
    async def main() -> None:
        Tasks().start(broken(), "work")
        await asyncio.sleep(1)

    with pytest.raises(ExceptionGroup) as failure:
        simulate(main)
    assert [type(error) for error in failure.value.exceptions] == [KeyError]


def test_an_exception_of_an_awaited_task_is_its_callers() -> None:
    async def main() -> None:
        with pytest.raises(KeyError):
            await Tasks().call(broken(), "call")

    simulate(main)


def test_an_exception_that_no_caller_asks_for_is_reported() -> None:
    async def main() -> None:
        Tasks().call(broken(), "call")
        await asyncio.sleep(1)

    with pytest.raises(ExceptionGroup):
        simulate(main)


def test_work_of_one_name_runs_once_at_a_time() -> None:
    async def main() -> list[str]:
        ran: list[str] = []
        gate = asyncio.Event()

        async def work() -> None:
            ran.append("begun")
            await gate.wait()

        tasks = Tasks()
        first = tasks.once("work", work)
        assert tasks.once("work", work) is first
        await asyncio.sleep(1)
        assert tasks.is_running("work")
        gate.set()
        await first
        assert not tasks.is_running("work")
        await tasks.once("work", work)
        return ran

    assert simulate(main) == ["begun", "begun"]


def test_work_that_fails_is_run_again_until_it_returns() -> None:
    async def main() -> tuple[int, int, str]:
        reports: list[object] = []
        loop().set_exception_handler(lambda _, context: reports.append(context["exception"]))
        tried = 0

        async def work() -> str:
            nonlocal tried
            tried += 1
            if tried <= 2:
                raise KeyError("a mistake")
            return "done"

        result = await Tasks().retry("work", work, timers())
        assert loop().time() == pytest.approx(2 * RETRY_MS / 1000)
        return tried, len(reports), result

    assert simulate(main) == (3, 2, "done")


def test_a_stop_cancels_everything_and_waits_for_it() -> None:
    async def main() -> list[str]:
        ended: list[str] = []

        async def work(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(1)
                ended.append(name)

        tasks = Tasks()
        tasks.start(work("a"), "a")
        tasks.retry("b", lambda: work("b"), timers())
        await asyncio.sleep(1)
        await tasks.stop()
        assert len(tasks) == 0
        return ended

    assert simulate(main) == ["a", "b"]
