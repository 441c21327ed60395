"""One sync for many callers, and a recovery point that never promises too much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.world.disk import DiskFailure
from barnabas.world.memory_file import MemoryFile

if TYPE_CHECKING:
    from .conftest import Machine


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that were synced, in order."""
    seen: list[str] = []
    sync = MemoryFile.sync

    async def counted(file: MemoryFile) -> None:
        seen.append(file.path.rpartition("/")[2])
        await sync(file)

    monkeypatch.setattr(MemoryFile, "sync", counted)
    return seen


def test_a_flush_moves_the_recovery_point_to_the_end(machine: Machine) -> None:
    machine.append(b"a", b"b")
    assert machine.log.recovery_point == 0
    machine.flush()
    assert machine.log.recovery_point == 2


def test_callers_share_one_sync_and_late_ones_the_next(machine: Machine, syncs: list[str]) -> None:
    async def main() -> None:
        machine.append(b"a")
        first = [asyncio.create_task(machine.log.flush()) for _ in range(5)]
        await asyncio.sleep(0)
        machine.append(b"b")
        second = [asyncio.create_task(machine.log.flush()) for _ in range(5)]
        await asyncio.gather(*first)
        await asyncio.gather(*second)
        assert machine.log.recovery_point == 2

    asyncio.run(main())
    assert syncs.count(f"{0:020d}.log") == 2


def test_a_caller_that_gives_up_does_not_harm_the_others(machine: Machine) -> None:
    async def main() -> None:
        machine.disk.sync_delay_ms = 1
        machine.append(b"a")
        first = asyncio.create_task(machine.log.flush())
        second = asyncio.create_task(machine.log.flush())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert machine.log.recovery_point == 1

    asyncio.run(main())


def test_nothing_new_needs_no_sync(machine: Machine, syncs: list[str]) -> None:
    machine.append(b"a")
    machine.flush()
    syncs.clear()
    machine.flush()
    assert syncs == []


def test_rolled_segments_are_synced_with_their_indexes(small: Machine, syncs: list[str]) -> None:
    for _ in range(20):
        small.append(b"x" * 50)
    asyncio.run(small.log.flush_closed())
    active = small.log.segments.active.base_offset
    assert small.log.recovery_point == active
    assert f"{0:020d}.index" in syncs
    assert f"{active:020d}.log" not in syncs
    syncs.clear()
    small.flush()
    assert small.log.recovery_point == small.log.end_offset
    assert f"{active:020d}.log" in syncs
    assert f"{0:020d}.log" not in syncs


def test_a_cut_during_a_sync_lowers_what_it_promises(machine: Machine) -> None:
    async def main() -> None:
        machine.disk.sync_delay_ms = 1
        for value in (b"a", b"b", b"c"):
            machine.append(value)
        flush = asyncio.create_task(machine.log.flush())
        await asyncio.sleep(0)
        machine.log.truncate_to(1)
        machine.append(b"d", leader_epoch=1)
        await asyncio.sleep(0)
        while machine.log.flushing._running is not None and machine.log.recovery_point == 0:
            await asyncio.sleep(0.001)
        assert machine.log.recovery_point <= 2
        await flush
        await machine.log.flush()
        assert machine.log.recovery_point == 2

    asyncio.run(main())


def test_a_sync_of_closed_segments_ends_when_the_log_is_cut_back_into_one(small: Machine) -> None:
    async def main() -> None:
        small.disk.sync_delay_ms = 1
        for _ in range(20):
            small.append(b"x" * 50)
        base = small.log.segments.active.base_offset
        flush = asyncio.create_task(small.log.flush_closed())
        await asyncio.sleep(0)
        small.log.truncate_to(base - 1)
        small.append(b"x", leader_epoch=1)
        small.append(b"x", leader_epoch=1)
        assert small.log.segments.active.base_offset < base < small.log.end_offset
        await asyncio.wait_for(flush, 10)

    asyncio.run(main())


def test_a_sync_that_fails_is_not_tried_again(machine: Machine, syncs: list[str]) -> None:
    failures: list[DiskFailure] = []
    machine.log.on_failure = lambda log, error: failures.append(error)
    machine.append(b"a")
    machine.disk.fail_next_sync(machine.directory)

    async def main() -> None:
        results = await asyncio.gather(*[machine.log.flush() for _ in range(3)], return_exceptions=True)
        assert all(isinstance(result, DiskFailure) for result in results)

    asyncio.run(main())
    assert len(syncs) == 1
    assert len(failures) == 1
    assert machine.log.recovery_point == 0
    with pytest.raises(DiskFailure):
        machine.append(b"b")


def test_a_flush_is_due_after_so_many_records_or_so_long(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(flush_messages=3, flush_ms=1000)
    machine.open()
    now = machine.clock.now_ms
    assert not machine.log.is_flush_due(now + 5000)
    machine.append(b"a", b"b")
    assert not machine.log.is_flush_due(now + 999)
    assert machine.log.is_flush_due(now + 1000)
    machine.append(b"c")
    assert machine.log.is_flush_due(now)
    machine.flush()
    assert not machine.log.is_flush_due(now + 5000)


def test_an_untouched_log_closes_without_a_sync(machine: Machine, syncs: list[str]) -> None:
    machine.append(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    machine.restart()
    syncs.clear()
    machine.restart()
    assert syncs == []
    assert machine.values() == [b"a"]
