"""The simulated loop: asyncio in virtual time, the same way every time."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.testing.loop import Deadlock, SimulatedLoop, VirtualTimeOver, simulate


def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


def test_a_year_passes_in_milliseconds() -> None:
    async def main() -> float:
        await asyncio.sleep(365 * 24 * 3600)
        return loop().time()

    begun = time.monotonic()
    assert simulate(main) == 365 * 24 * 3600
    assert time.monotonic() - begun < 1


def test_timers_fire_in_the_order_of_their_times_then_of_their_making() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        for name, delay in (("c", 0.2), ("a", 0.1), ("d", 0.2), ("b", 0.1)):
            loop().call_later(delay, order.append, name)
        loop().call_later(0.15, order.append, "never").cancel()
        await asyncio.sleep(1)
        return order

    assert simulate(main) == ["a", "b", "c", "d"]


def test_asyncio_works_as_ever() -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
        opened = asyncio.Event()

        async def produce() -> None:
            await opened.wait()
            for number in range(5):
                await queue.put(number)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(produce())
            opened.set()
            seen.extend([await queue.get() for _ in range(5)])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.Event().wait()
        seen.append(loop().time())
        async with asyncio.Lock(), asyncio.Semaphore(1):
            seen.append(await asyncio.wait_for(asyncio.sleep(1, "slept"), 2))
        seen.extend(await asyncio.gather(asyncio.sleep(2, "x"), asyncio.sleep(1, "y")))
        return seen

    assert simulate(main) == [0, 1, 2, 3, 4, 3.0, "slept", "x", "y"]


def test_a_task_group_cancels_its_tasks_in_the_order_of_their_making() -> None:
    async def main() -> list[int]:
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                cancelled.append(number)

        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError

        async def fail_together() -> None:
            async with asyncio.TaskGroup() as tasks:
                for number in range(50):
                    tasks.create_task(wait(number))
                tasks.create_task(fail())

        with pytest.raises(ExceptionGroup):
            await fail_together()
        return cancelled

    first = simulate(main)
    assert sorted(first) == list(range(50))
    assert simulate(main) == first


def test_a_deadlock_names_who_waits() -> None:
    async def main() -> None:
        stuck = asyncio.create_task(asyncio.Event().wait(), name="the-stuck-one")
        await stuck

    with pytest.raises(Deadlock, match="the-stuck-one") as caught:
        simulate(main, seed=17)
    assert "seed 17" in caught.value.__notes__[0]


def test_a_time_limit_ends_what_would_go_on_for_ever() -> None:
    async def main() -> None:
        for _ in itertools.count():
            await asyncio.sleep(1)

    with pytest.raises(VirtualTimeOver):
        simulate(main, time_s_max=100)


def test_an_exception_nobody_asked_for_fails_the_run() -> None:
    async def main() -> None:
        async def fail() -> None:
            raise ValueError("unseen")

        kept.append(asyncio.create_task(fail()))
        await asyncio.sleep(1)

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(ExceptionGroup) as caught:
        simulate(main)
    assert isinstance(caught.value.exceptions[0], ValueError)


def test_an_exception_in_a_callback_fails_the_run() -> None:
    async def main() -> None:
        loop().call_soon(int, "x")
        await asyncio.sleep(1)

    with pytest.raises(ExceptionGroup):
        simulate(main)


def test_tasks_left_over_are_cancelled_and_generators_closed() -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("generator")

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            closed.append("task")

    async def main() -> AsyncIterator[int]:
        left = numbers()
        await left.__anext__()
        kept.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)
        return left

    kept: list[asyncio.Task[None]] = []
    simulate(main)
    assert closed == ["task", "generator"] or closed == ["generator", "task"]


def test_threads_are_refused_with_a_reason() -> None:
    async def main() -> None:
        with pytest.raises(NotImplementedError, match=r"world\.workers"):
            await asyncio.to_thread(int, "1")
        with pytest.raises(NotImplementedError, match="processes are outside"):
            await loop().subprocess_exec(asyncio.SubprocessProtocol, "true")

    simulate(main)


def test_a_paused_host_stands_still_and_catches_up() -> None:
    async def main() -> list[tuple[str, float]]:
        beats: list[tuple[str, float]] = []

        async def beat(name: str) -> None:
            while True:
                await asyncio.sleep(1)
                beats.append((name, loop().time()))

        tasks = [loop().start_on(name, beat(name)) for name in ("a", "b")]
        await asyncio.sleep(1.5)
        loop().network.pause("a")
        await asyncio.sleep(2)
        loop().network.resume("a")
        await asyncio.sleep(1)
        assert len(tasks) == 2
        return beats

    assert simulate(main) == [("a", 1), ("b", 1), ("b", 2), ("b", 3), ("a", 3.5), ("b", 4), ("a", 4.5)]


def test_a_dead_host_does_not_even_clean_up() -> None:
    cleaned: list[float] = []

    async def main() -> None:
        async def live() -> None:
            try:
                await asyncio.sleep(10)
            finally:
                cleaned.append(loop().time())

        dead = loop().start_on("a", live())
        await asyncio.sleep(1)
        loop().network.kill("a")
        await asyncio.sleep(100)
        assert cleaned == []
        assert not dead.done()

    simulate(main)


SCRIPT = """
import asyncio
from barnabas.testing.loop import simulate

async def main():
    names = {f"name-{n}" for n in range(20)}
    tasks = {asyncio.create_task(asyncio.sleep(1 + len(name) / 10, name), name=name) for name in sorted(names)}
    done, _ = await asyncio.wait(tasks)
    loop = asyncio.get_running_loop()
    for task in done:
        loop.trace("done", 0, task.result().encode())
    return loop.trace_hash()

print(simulate(main, seed=5))
"""


def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    def run(hash_seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True).stdout

    assert run("1") == run("2") != b""


def test_a_generator_of_a_killed_host_stands_still() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    async def count() -> None:
        async for _ in numbers():
            pass

    async def main() -> None:
        loop().start_on("other", count())
        await asyncio.sleep(1)
        loop().network.kill("other")

    simulate(main)
