"""What a power cut leaves, and the faults tests can ask for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.testing.loop import simulate
from barnabas.testing.world import SeededEntropy
from barnabas.world.disk import AlreadyLocked, DiskFailure, DiskFull, FileClosed, replace
from barnabas.world.memory import MemoryDisk
from barnabas.world.memory_file import PAGE_BYTES
from barnabas.world.real import RealClock


def entropy(seed: int) -> SeededEntropy:
    return SeededEntropy(random.Random(seed))


def new_disk(**options: Any) -> MemoryDisk:
    disk = MemoryDisk(RealClock(), **options)
    disk.make_directory("/data")
    disk.sync_all()
    return disk


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        await coroutine

    simulate(main)


def content(disk: MemoryDisk, path: str) -> bytes:
    return disk.read_all(path, size_bytes_max=1 << 30)


def outcomes(prepare: Any, path: str, seeds: int = 200) -> set[bytes | None]:
    """What may be found at a path after a crash."""
    found: set[bytes | None] = set()
    for seed in range(seeds):
        disk = new_disk()
        run(prepare(disk))
        disk.crash(entropy(seed))
        found.add(content(disk, path) if disk.exists(path) else None)
    return found


def test_synced_bytes_survive_and_appended_ones_may_be_lost_or_cut() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        file = disk.open("/data/log", create=True)
        await disk.sync_directory("/data")
        file.append(b"durable")
        await file.sync()
        file.append(b"perhaps")

    found = outcomes(prepare, "/data/log")
    assert None not in found
    assert {b"durable", b"durableperhaps"} <= found
    assert len(found) > 4
    assert all(survived is not None and survived.startswith(b"durable") for survived in found)


def test_pages_of_what_was_not_synced_may_be_holes() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        file = disk.open("/data/log", create=True)
        await disk.sync_directory("/data")
        file.append(b"x" * (4 * PAGE_BYTES))

    found = outcomes(prepare, "/data/log")
    assert any(survived and b"\0x" in survived for survived in found)


def test_pages_stay_whole_when_told_so() -> None:
    for seed in range(100):
        disk = new_disk(tears_pages=False)
        file = disk.open("/data/log", create=True)
        file.append(b"x" * (4 * PAGE_BYTES))
        disk.crash(entropy(seed))
        if disk.exists("/data/log"):
            assert b"\0" not in content(disk, "/data/log")


def test_what_is_written_while_a_sync_is_under_way_is_not_covered_by_it() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        disk.sync_delay_ms = 10
        file = disk.open("/data/log", create=True)
        await disk.sync_directory("/data")
        file.append(b"before")
        sync = asyncio.create_task(file.sync())
        await asyncio.sleep(0.001)
        file.append(b"after")
        await sync

    found = outcomes(prepare, "/data/log")
    assert {b"before", b"beforeafter"} <= found
    assert all(survived is not None and survived.startswith(b"before") for survived in found)


def test_a_sync_that_is_not_done_promises_nothing() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        disk.sync_delay_ms = 10
        file = disk.open("/data/log", create=True)
        await disk.sync_directory("/data")
        file.append(b"data")
        sync = asyncio.create_task(file.sync())
        await asyncio.sleep(0.001)
        sync.cancel()

    assert b"" in outcomes(prepare, "/data/log")


def test_a_truncation_may_come_undone_or_stand_alone() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        file = disk.open("/data/log", create=True)
        file.append(b"old old old")
        await file.sync()
        await disk.sync_directory("/data")
        file.truncate(3)
        file.append(b" new")

    found = outcomes(prepare, "/data/log")
    assert {b"old old old", b"old", b"old new"} <= found


def test_a_new_name_is_durable_only_with_its_directory() -> None:
    async def without(disk: MemoryDisk) -> None:
        file = disk.open("/data/log", create=True)
        file.append(b"x")
        await file.sync()

    async def within(disk: MemoryDisk) -> None:
        await without(disk)
        await disk.sync_directory("/data")

    assert outcomes(without, "/data/log") == {None, b"x"}
    assert outcomes(within, "/data/log") == {b"x"}


def test_a_directory_needs_its_parent_synced() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        disk.make_directory("/data/topic-0")
        await replace(disk, "/data/topic-0/meta", b"x")

    async def prepare_well(disk: MemoryDisk) -> None:
        await prepare(disk)
        await disk.sync_directory("/data")

    assert outcomes(prepare, "/data/topic-0/meta") == {None, b"x"}
    assert outcomes(prepare_well, "/data/topic-0/meta") == {b"x"}


def test_a_replaced_file_is_the_old_or_the_new_one_at_every_step() -> None:
    for seed in range(300):
        disk = new_disk()
        run(replace(disk, "/data/checkpoint", b"old" * 3000))

        async def cut_short(disk: MemoryDisk = disk, seed: int = seed) -> None:
            disk.sync_delay_ms = 10
            task = asyncio.create_task(replace(disk, "/data/checkpoint", b"new" * 3000))
            await asyncio.sleep(entropy(seed).below(25) / 1000)
            task.cancel()

        run(cut_short())
        disk.crash(entropy(seed))
        assert content(disk, "/data/checkpoint") in (b"old" * 3000, b"new" * 3000)


def test_a_rename_without_a_synced_file_may_leave_it_empty() -> None:
    async def prepare(disk: MemoryDisk) -> None:
        file = disk.open("/data/a.tmp", create=True)
        file.append(b"x")
        disk.rename("/data/a.tmp", "/data/a")
        await disk.sync_directory("/data")

    assert outcomes(prepare, "/data/a") == {b"", b"x", b"\0"}


def test_a_crash_ends_handles_and_locks() -> None:
    disk = new_disk()
    file = disk.open("/data/log", create=True)
    lock = disk.lock("/data/.lock")
    disk.sync_all()
    with pytest.raises(AlreadyLocked):
        disk.lock("/data/.lock")
    disk.crash(entropy(1))
    with pytest.raises(FileClosed):
        file.append(b"x")
    again = disk.lock("/data/.lock")
    lock.release()
    with pytest.raises(AlreadyLocked):
        disk.lock("/data/.lock")
    again.release()


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    disk = new_disk()
    disk.open("/data/log", create=True).append(b"written")
    disk.kill()
    assert content(disk, "/data/log") == b"written"


def test_a_full_disk_takes_nothing_and_goes_on_when_there_is_room() -> None:
    disk = new_disk(capacity_bytes=100)
    file = disk.open("/data/log", create=True)
    file.append(b"x" * 90)
    with pytest.raises(DiskFull):
        file.append(b"y" * 11)
    assert file.size_bytes == 90
    assert disk.free_bytes("/data") == 10
    disk.capacity_bytes = 200
    file.append(b"y" * 11)
    assert file.size_bytes == 101


def test_a_sync_fails_once_when_told_and_is_not_believed_again() -> None:
    async def main() -> None:
        disk = new_disk()
        file, other = disk.open("/data/a", create=True), disk.open("/data/b", create=True)
        disk.fail_next_sync("/data/a")
        await other.sync()
        for _ in range(2):
            with pytest.raises(DiskFailure):
                await file.sync()
        assert file.has_failed
        disk.fail_next_sync("/data")
        with pytest.raises(DiskFailure):
            await disk.sync_directory("/data")
        await disk.sync_directory("/data")

    simulate(main)


def test_reads_and_writes_fail_once_when_told() -> None:
    disk = new_disk()
    file = disk.open("/data/log", create=True)
    disk.fail_next_write("/data/log")
    with pytest.raises(DiskFailure):
        file.append(b"x")
    file.append(b"x")
    disk.fail_next_read("/data/log")
    with pytest.raises(DiskFailure):
        file.read(0, 1)
    assert file.read(0, 1) == b"x"


def test_a_bit_flips_for_good() -> None:
    disk = new_disk()
    file = disk.open("/data/log", create=True)
    file.append(b"\0\0")
    disk.sync_all()
    disk.flip_bit("/data/log", 1, 3)
    disk.crash(entropy(3))
    assert content(disk, "/data/log") == b"\0\x08"


def test_a_slow_device_takes_virtual_time() -> None:
    async def main() -> float:
        disk = new_disk()
        disk.is_cached = False
        disk.load_delay_ms = 3000
        file = disk.open("/data/log", create=True)
        file.append(b"x")
        assert file.view(0, 1) is None
        assert await file.load(0, 1) == b"x"
        return asyncio.get_running_loop().time()

    assert simulate(main) == 3.0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3 * PAGE_BYTES)),
        st.tuples(st.just("write"), st.integers(0, 5 * PAGE_BYTES)),
        st.tuples(st.just("truncate"), st.integers(0, 5 * PAGE_BYTES)),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(0, 1 << 32), st.booleans())
def test_after_any_history_the_durable_bytes_are_those_of_the_last_sync(
    steps: list[tuple[str, int]], seed: int, tears_pages: bool
) -> None:
    """Against a model: a plain bytearray, and a copy of it at every sync."""

    async def main() -> None:
        disk = new_disk(tears_pages=tears_pages)
        file = disk.open("/data/log", create=True)
        await disk.sync_directory("/data")
        now, synced = bytearray(), b""
        only_grew = True
        for number, (step, size_bytes) in enumerate(steps):
            data = bytes([number % 255 + 1])
            if step == "append":
                file.append(data * size_bytes)
                now += data * size_bytes
            elif step == "write":
                position = min(size_bytes, len(now))
                file.write(position, data * 700)
                only_grew &= position >= len(synced)
                now[position : position + 700] = data * 700
            elif step == "truncate":
                file.truncate(min(size_bytes, len(now)))
                only_grew &= size_bytes >= len(synced)
                del now[size_bytes:]
            else:
                await file.sync()
                synced, only_grew = bytes(now), True
        assert file.read(0, 1 << 20) == now
        assert file._node.durable() == synced
        disk.crash(entropy(seed))
        survived = content(disk, "/data/log")
        if only_grew:
            assert survived[: len(synced)] == synced
            assert len(survived) <= max(len(now), len(synced))
        again = disk.open("/data/log")
        again.append(b"on")
        disk.crash(entropy(seed + 1))
        assert content(disk, "/data/log")[: len(survived)] == survived, "what survived a crash is durable"

    simulate(main)
