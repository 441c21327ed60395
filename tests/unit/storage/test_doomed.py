"""Files that are to vanish: after their time or when room is short, off the loop, and not on a disk that has failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from barnabas.storage.doomed import Doomed
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timers

if TYPE_CHECKING:
    from .conftest import Machine

T = TypeVar("T")


class SlowWorkers:
    """Does its work when it is let go."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.count = 0

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        self.count += 1
        await self.gate.wait()
        return work(*arguments)

    async def close(self) -> None: ...


class Stage:
    def __init__(self, machine: Machine) -> None:
        self.clock = AdjustableClock(machine.clock)
        self.disk = machine.disk
        self.workers = SlowWorkers()
        self.timers = Timers(self.clock)
        self.failed: list[tuple[str, DiskFailure]] = []
        world = replace(machine.world, clock=self.clock, workers=self.workers)
        self.doomed = Doomed(world, self.timers, on_failure=lambda home, error: self.failed.append((home, error)))
        for home in ("/a", "/b"):
            self.disk.make_directory(home)

    def add(self, path: str, *, delay_ms: int = 1000) -> str:
        self.disk.open(path, create=True).close()
        self.doomed.add(path.rpartition("/")[0], path, delay_ms=delay_ms)
        return path

    async def turn(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0.001)


@pytest.fixture
def run(new_machine: Callable[..., Machine]) -> Callable[[Callable[[Stage], Coroutine[Any, Any, None]]], None]:
    def play(scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            stage = Stage(new_machine())
            await scene(stage)
            await stage.doomed.close()
            stage.timers.close()

        asyncio.run(main())

    return play


def test_what_is_due_at_once_goes_in_few_batches_off_the_loop(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        paths = [stage.add(f"/a/{number}") for number in range(100)]
        stage.clock.advance(1000)
        await stage.turn()
        assert all(map(stage.disk.exists, paths)), "nobody has waited for it"
        stage.workers.gate.set()
        await stage.doomed.done()
        assert not any(map(stage.disk.exists, paths))
        assert stage.workers.count <= 5

    run(scene)


def test_a_hurry_is_for_one_directory(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.workers.gate.set()
        mine, other = stage.add("/a/1"), stage.add("/b/1")
        stage.doomed.hurry("/a")
        await stage.doomed.done()
        assert (stage.disk.exists(mine), stage.disk.exists(other)) == (False, True)

    run(scene)


def test_nothing_is_touched_on_a_disk_that_has_failed_nor_after_the_end(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        lost, late = stage.add("/a/1"), stage.add("/b/1", delay_ms=5000)
        blocking = stage.add("/b/0", delay_ms=0)
        stage.clock.advance(1)
        await stage.turn()
        stage.doomed.hurry("/a")
        stage.doomed.forget("/a")
        stage.workers.gate.set()
        await stage.doomed.close()
        assert stage.disk.exists(lost)
        assert stage.disk.exists(late)
        assert not stage.disk.exists(blocking)

    run(scene)


def test_a_failure_is_told_and_the_rest_goes_on(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        bad, good = stage.add("/a/bad", delay_ms=0), stage.add("/b/good", delay_ms=0)
        remove = stage.disk.remove

        def remove_or_fail(path: str) -> None:
            if path == bad:
                raise DiskFailure(path, "Input/output error")
            remove(path)

        monkeypatch.setattr(stage.disk, "remove", remove_or_fail)
        stage.workers.gate.set()
        stage.clock.advance(1)
        await stage.turn()
        await stage.doomed.done()
        assert not stage.disk.exists(good)
        assert [(home, error.path) for home, error in stage.failed] == [("/a", bad)]

    run(scene)


def test_what_is_doomed_again_goes_by_the_new_delay(run: Any) -> None:
    async def scene(stage: Stage) -> None:
        stage.workers.gate.set()
        path = stage.add("/a/1", delay_ms=1000)
        stage.add("/a/1", delay_ms=5000)
        stage.clock.advance(2000)
        await stage.turn()
        assert stage.disk.exists(path)
        stage.clock.advance(3000)
        await stage.turn()
        await stage.doomed.done()
        assert not stage.disk.exists(path)

    run(scene)
