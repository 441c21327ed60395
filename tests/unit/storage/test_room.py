"""The reserve of a disk, and what a log does when the disk is full at the worst moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.storage.open_segments import OpenSegments
from barnabas.storage.room import BUDGET_BYTES_MAX, RESERVE_BYTES_MAX, RESERVE_SHARE, Room
from barnabas.world.disk import DiskFailure, DiskFull

if TYPE_CHECKING:
    from conftest import Machine

MIB = 1 << 20


def test_the_last_part_of_a_disk_is_kept(machine: Machine) -> None:
    machine.disk.capacity_bytes = machine.disk.used_bytes() + 64 * MIB
    room = Room(machine.disk, "/data")
    assert room.reserve_bytes == pytest.approx(64 * MIB / RESERVE_SHARE, abs=10_000)
    room.take(61 * MIB)
    with pytest.raises(DiskFull, match="are kept for the broker's own records"):
        room.take(63 * MIB)
    assert room.is_tight
    room.take(MIB)
    assert not room.is_tight


def test_a_large_disk_keeps_no_more_than_a_bound(machine: Machine) -> None:
    machine.disk.capacity_bytes = 1 << 50
    assert Room(machine.disk, "/data").reserve_bytes == RESERVE_BYTES_MAX


def test_the_disk_is_not_asked_for_every_batch(machine: Machine) -> None:
    asked = []
    room = Room(machine.disk, "/data")
    free_bytes = machine.disk.free_bytes
    machine.disk.free_bytes = lambda path: asked.append(path) or free_bytes(path)  # type: ignore[method-assign, func-returns-value]
    for _ in range(1000):
        room.take(1000)
    assert len(asked) == 1
    room.take(BUDGET_BYTES_MAX)
    assert len(asked) == 2


def test_room_is_made_before_it_is_tight(machine: Machine) -> None:
    machine.disk.capacity_bytes = machine.disk.used_bytes() + 64 * MIB
    made = []
    room = Room(machine.disk, "/data", on_short=lambda: made.append(1))
    room.take(59 * MIB)
    assert not made
    room.take(61 * MIB)
    assert made
    assert not room.is_tight


@pytest.mark.parametrize("free_bytes", range(0, 900, 7))
def test_a_log_is_sound_wherever_the_disk_gets_full(new_machine: Callable[..., Machine], free_bytes: int) -> None:
    """Appends, rolls, snapshots, aborted transactions: some write fails, nothing that was acknowledged is lost."""
    machine = new_machine(segment_bytes=300, index_interval_bytes=50)
    machine.open()
    acknowledged: dict[int, bytes] = {}

    def write(number: int) -> None:
        value = b"%d" % number
        try:
            if number % 5 == 0:
                first = machine.append(
                    value, producer_id=number, producer_epoch=0, base_sequence=0, is_transactional=True
                )
                acknowledged[first.base_offset] = value
                machine.end_transaction(number, is_abort=True)
            else:
                acknowledged[machine.append(value).base_offset] = value
        except DiskFull:
            return

    for number in range(8):
        write(number)
    machine.disk.capacity_bytes = machine.disk.used_bytes() + free_bytes
    for number in range(8, 30):
        write(number)
        if number % 7 == 0:
            with contextlib.suppress(DiskFull):
                machine.flush()
    assert machine.log.failure is None
    machine.disk.capacity_bytes = None
    for number in range(30, 40):
        write(number)
    machine.flush()
    aborted = machine.log.aborted_transactions(0, machine.log.end_offset)
    content = machine.read_all()
    assert {record.offset: record.value for record in content if record.offset in acknowledged} == acknowledged
    machine.crash(free_bytes)
    machine.open(recovery_point=machine.log.recovery_checkpoint)
    assert machine.read_all() == content
    assert machine.log.aborted_transactions(0, machine.log.end_offset) == aborted


def test_a_batch_that_found_no_room_can_be_tried_again(machine: Machine) -> None:
    machine.append(b"first")
    machine.disk.capacity_bytes = machine.disk.used_bytes()
    batch = machine.batch(b"second")
    before = bytes(batch)
    with pytest.raises(DiskFull):
        machine.append_batch(batch)
    assert bytes(batch) == before
    machine.disk.capacity_bytes = None
    assert machine.append_batch(batch).base_offset == 1


def test_a_follower_that_finds_no_room_fetches_again_later(
    machine: Machine, new_machine: Callable[..., Machine]
) -> None:
    for number in range(20):
        machine.append(b"%d" % number + bytes(50))
    records = machine.raw(0)
    follower = new_machine(segment_bytes=300)
    log = follower.open()
    follower.disk.capacity_bytes = follower.disk.used_bytes() + 700
    with pytest.raises(DiskFull):
        log.append_as_follower(records, leader_epoch_max=None, now_ms=follower.clock.now_ms)
    assert log.failure is None
    follower.disk.capacity_bytes = None
    log.append_as_follower(machine.raw(log.end_offset), leader_epoch_max=None, now_ms=follower.clock.now_ms)
    assert [record.value for record in follower.read_all()] == machine.values()


def test_a_failed_sync_is_final_however_much_room_there_is(machine: Machine) -> None:
    machine.append(b"a")
    machine.disk.fail_next_sync("/data")
    with pytest.raises(DiskFailure):
        machine.flush()
    assert machine.log.failure is not None


def test_retention_makes_room_on_a_disk_without_any(new_machine: Callable[..., Machine]) -> None:
    """Even the active segment has expired, but a new one cannot be begun: the others go all the same."""
    machine = new_machine(segment_bytes=300, retention_ms=1000)
    machine.open()
    for number in range(20):
        machine.append(b"%d" % number)
    machine.log.advance_high_watermark(20)
    machine.clock.now_ms += 10_000
    machine.disk.capacity_bytes = machine.disk.used_bytes()
    assert machine.log.retain(machine.clock.now_ms) > 0
    assert machine.log.log_start_offset > 0


def test_only_so_many_files_are_open_however_many_logs_are_written(new_machine: Callable[..., Machine]) -> None:
    shared = OpenSegments(open_max=16)
    machines = [new_machine() for _ in range(40)]
    for each in machines:
        each.open(open_segments=shared)
    for number in range(5):
        for each in machines:
            each.append(b"%d" % number)
            assert shared.open_count <= 16
    for each in machines:
        assert each.values() == [b"%d" % number for number in range(5)]
        assert shared.open_count <= 16
        asyncio.run(each.log.flush())
    assert sum(each.log.segments.active.file is not None for each in machines) <= 16
