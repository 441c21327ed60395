"""Truncation, deletion of records and retention: what goes, and everything that must go with it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFull

if TYPE_CHECKING:
    from .conftest import Machine

HOUR_MS = 3_600_000


def filled(machine: Machine, count: int = 30) -> list[bytes]:
    values = [b"value %d" % number for number in range(count)]
    for number, value in enumerate(values):
        machine.append(value, leader_epoch=number // 10, producer_id=3, producer_epoch=0, base_sequence=number)
    return values


@pytest.mark.parametrize("offset", range(31))
def test_a_log_cut_at_any_offset_goes_on_from_there(small: Machine, offset: int) -> None:
    values = filled(small)
    small.log.advance_high_watermark(30)
    small.flush()
    small.log.truncate_to(offset)
    assert small.log.end_offset == offset
    assert small.values() == values[:offset]
    assert small.log.recovery_point <= offset
    assert small.log.high_watermark == offset
    assert small.log.latest_epoch == (offset - 1) // 10 if offset else small.log.latest_epoch == -1
    assert (
        small.append(b"new", leader_epoch=7, producer_id=3, producer_epoch=0, base_sequence=offset).base_offset
        == offset
    )
    assert small.values() == [*values[:offset], b"new"]
    small.reopen()
    assert small.values() == [*values[:offset], b"new"]
    assert small.log.latest_epoch == 7


def test_a_cut_beyond_the_end_only_forgets_an_empty_epoch(machine: Machine) -> None:
    machine.append(b"a", leader_epoch=1)
    machine.log.begin_epoch(2, 1)
    machine.log.truncate_to(5)
    assert machine.log.end_offset == 1
    assert machine.log.latest_epoch == 1


def test_a_cut_takes_aborted_transactions_with_it(small: Machine) -> None:
    for number in range(6):
        small.append(b"x", producer_id=1, producer_epoch=0, base_sequence=number, is_transactional=True)
        small.end_transaction(1, is_abort=True)
    assert len(small.log.aborted_transactions(0, 12)) == 6
    small.log.truncate_to(7)
    assert [each.first_offset for each in small.log.aborted_transactions(0, 7)] == [0, 2, 4]
    small.log.advance_high_watermark(7)
    assert small.log.last_stable_offset == 6
    assert small.log.producers.has_open_transaction(1)


def test_a_cut_makes_the_time_index_right_again(small: Machine) -> None:
    now = small.clock.now_ms
    for number in range(20):
        small.append(b"%d" % number, timestamp=now + number)
    small.log.truncate_to(11)
    assert small.log.offset_of_max_timestamp() == (10, now + 10, 0)
    assert small.log.offset_for_time(now + 11) is None


def test_a_log_can_begin_anew_at_any_offset(small: Machine) -> None:
    filled(small)
    small.log.advance_high_watermark(30)
    small.log.truncate_fully(100)
    log = small.log
    assert (log.log_start_offset, log.end_offset, log.high_watermark) == (100, 100, 100)
    assert log.latest_epoch == -1
    assert not log.producers.by_id
    assert small.names(".log") == [f"{100:020d}.log"]
    assert small.append(b"a").base_offset == 100
    small.reopen()
    assert small.values() == [b"a"]
    assert small.log.log_start_offset == 100


def test_a_cut_below_the_first_segment_begins_anew(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine()
    machine.open(log_start_offset=50)
    machine.append(b"a")
    machine.log.truncate_to(20)
    assert (machine.log.log_start_offset, machine.log.end_offset) == (20, 20)


def test_deleted_records_cannot_be_read(small: Machine) -> None:
    values = filled(small)
    small.log.advance_high_watermark(25)
    with pytest.raises(ApiError) as raised:
        small.log.delete_records(26)
    assert raised.value.error is errors.OFFSET_OUT_OF_RANGE
    small.log.delete_records(17)
    assert small.log.log_start_offset == 17
    assert small.values() == values[17:]
    with pytest.raises(ApiError):
        small.raw(16)
    assert small.log.epochs.entries() == [(1, 17), (2, 20)]
    small.log.delete_records(5)
    assert small.log.log_start_offset == 17


def test_segments_below_the_start_go_whatever_the_policy(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=600, index_interval_bytes=100, cleanup_policy=("compact",), retention_ms=1)
    machine.open()
    values = filled(machine)
    machine.log.advance_high_watermark(30)
    machine.clock.now_ms += HOUR_MS
    assert machine.log.retain(machine.clock.now_ms) == 0
    machine.log.delete_records(17)
    count = machine.log.retain(machine.clock.now_ms)
    assert count > 0
    assert machine.log.segments.first.base_offset <= 17
    assert machine.values() == values[17:]
    assert len(machine.names(".log")) == len(machine.log.segments)


def test_old_segments_go_and_the_log_starts_after_them(small: Machine) -> None:
    now = small.clock.now_ms
    for number in range(30):
        small.append(b"%d" % number, timestamp=now + number * 100)
    small.log.advance_high_watermark(30)
    small.clock.now_ms = now + 2500
    count = small.log.retain(small.clock.now_ms)
    assert count > 0
    start = small.log.log_start_offset
    assert 0 < start <= 15
    assert small.read_all()[0].offset == start
    assert all(segment.max_timestamp >= now + 1500 for segment in small.log.segments.all())
    small.reopen()
    assert small.log.log_start_offset == start


def test_a_wholly_expired_log_ends_up_empty_where_it_was(small: Machine) -> None:
    filled(small)
    small.log.advance_high_watermark(30)
    small.clock.now_ms += HOUR_MS
    small.log.retain(small.clock.now_ms)
    assert (small.log.log_start_offset, small.log.end_offset) == (30, 30)
    assert small.names(".log") == [f"{30:020d}.log"]
    assert small.append(b"a").base_offset == 30
    assert small.log.retain(small.clock.now_ms) == 1 or small.log.log_start_offset == 30


def test_nothing_above_the_high_watermark_expires(small: Machine) -> None:
    filled(small)
    second = small.log.segments[1].base_offset
    small.log.advance_high_watermark(second)
    small.clock.now_ms += HOUR_MS
    assert small.log.retain(small.clock.now_ms) == 1
    assert small.log.log_start_offset == second


def test_a_future_timestamp_keeps_its_segment(small: Machine) -> None:
    small.append(b"future", timestamp=small.clock.now_ms + HOUR_MS)
    filled(small)
    small.log.advance_high_watermark(31)
    small.clock.now_ms += HOUR_MS
    assert small.log.retain(small.clock.now_ms) == 0


def test_records_without_timestamps_expire_by_the_files_time(small: Machine) -> None:
    for _ in range(10):
        small.append(b"x" * 100, timestamp=-1)
    small.log.advance_high_watermark(10)
    assert small.log.retain(small.clock.now_ms) == 0
    small.clock.now_ms += 1001
    assert small.log.retain(small.clock.now_ms) > 0


def test_a_log_stays_within_a_segment_of_its_size(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=600, retention_bytes=1500, retention_ms=-1)
    machine.open()
    filled(machine)
    machine.log.advance_high_watermark(30)
    machine.log.retain(machine.clock.now_ms)
    assert 1500 <= machine.log.size_bytes < 1500 + 600


def test_an_empty_policy_keeps_everything(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=600, retention_bytes=1, retention_ms=1, cleanup_policy=())
    machine.open()
    filled(machine)
    machine.log.advance_high_watermark(30)
    machine.clock.now_ms += HOUR_MS
    assert machine.log.retain(machine.clock.now_ms) == 0


def test_dropped_files_vanish_later_and_readers_finish(small: Machine) -> None:
    later: list[tuple[Sequence[str], int]] = []
    small.log.remove_later = lambda paths, delay_ms: later.append((paths, delay_ms))
    filled(small)
    small.log.advance_high_watermark(30)
    held = small.log.read(0, size_bytes_max=100, end_offset_max=30, at_least_one=True).records
    assert held is not None
    small.clock.now_ms += HOUR_MS
    small.log.retain(small.clock.now_ms)
    ((paths, delay_ms),) = later
    assert delay_ms == small.settings.file_delete_delay_ms
    assert all(path.endswith(".deleted") and small.disk.exists(path) for path in paths)
    assert held.file.read(held.position, held.size_bytes)
    small.reopen()
    assert not any(small.disk.exists(path) for path in paths)


@pytest.mark.parametrize("seed", range(20))
def test_cuts_and_appends_in_any_order_keep_log_and_memory_the_same(
    new_machine: Callable[..., Machine], seed: int
) -> None:
    chance = random.Random(seed)
    machine = new_machine(segment_bytes=500, index_interval_bytes=80)
    machine.open()
    values: list[bytes] = []
    for epoch in range(25):
        for _ in range(chance.randrange(8)):
            value = b"%d" % chance.randrange(10**6)
            machine.append(value, leader_epoch=epoch)
            values.append(value)
        if values and chance.random() < 0.6:
            offset = chance.randrange(len(values) + 1)
            machine.log.truncate_to(offset)
            del values[offset:]
        if chance.random() < 0.2:
            machine.restart() if chance.random() < 0.5 else machine.reopen()
        assert machine.values() == values


def test_a_segment_that_is_active_again_is_flushed_as_such(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=500, index_interval_bytes=80)
    machine.open()
    for number in range(20):
        machine.append(b"%d" % number)
    assert len(list(machine.log.segments.all())) > 2
    machine.log.truncate_to(3)  # into the first segment, which had been closed and was not yet synced
    asyncio.run(asyncio.wait_for(machine.log.flush(), 10))
    assert machine.log.recovery_point == 3
    machine.append(b"again")
    asyncio.run(asyncio.wait_for(machine.log.flush(), 10))
    assert machine.log.recovery_point == 4


def test_a_cut_within_a_batch_goes_to_its_start(small: Machine) -> None:
    """No gap is left before what follows: recovery would take a single batch behind one for a rotten one."""
    for _ in range(5):
        small.append(b"a", b"b", b"c", b"d", leader_epoch=1)
    small.log.advance_high_watermark(20)
    small.log.truncate_to(14)
    assert (small.log.end_offset, small.log.high_watermark) == (12, 12)
    assert small.append(b"new", leader_epoch=2).base_offset == 12
    small.reopen()
    assert small.values() == [*[b"a", b"b", b"c", b"d"] * 3, b"new"]


@pytest.mark.parametrize("is_powerless", [True, False])
@pytest.mark.parametrize(("before", "offset", "start"), [(0, 3, 2), (0, 2, 2), (0, 1, 1), (9, 39, 38), (9, 38, 38)])
def test_a_cut_that_leaves_nothing_begins_a_segment_at_the_start_of_the_log(
    small: Machine, before: int, offset: int, start: int, is_powerless: bool
) -> None:
    """Whatever lies below the start, of one segment or of many, is of no use to what follows."""
    for _ in range(before):
        small.append(b"a", b"b", b"c", b"d", leader_epoch=1)
    small.append(b"a", b"b", b"c", b"d", leader_epoch=1)
    small.log.advance_high_watermark(4 * before + 4)
    small.log.delete_records(4 * before + 2)
    small.log.truncate_to(offset)
    assert (small.log.log_start_offset, small.log.end_offset) == (start, start)
    assert small.names(".log") == [f"{start:020d}.log"]
    assert small.append(b"new", leader_epoch=2).base_offset == start
    if is_powerless:
        small.flush()
        small.crash(1)
        small.open(log_start_offset=start)
    else:
        small.reopen(log_start_offset=start)
    assert small.values() == [b"new"]
    assert small.log.end_offset == start + 1


def test_a_log_that_is_cut_to_nothing_on_a_full_disk_goes_on_all_the_same(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise DiskFull(machine.directory, "No space left on device")

    machine.append(b"a", b"b", b"c", b"d", leader_epoch=1)
    machine.log.advance_high_watermark(4)
    machine.log.delete_records(2)
    with monkeypatch.context() as patch:
        patch.setattr(Segment, "create", no_room)
        machine.log.truncate_to(3)
    assert (machine.log.log_start_offset, machine.log.end_offset) == (2, 2)
    assert machine.append(b"new", leader_epoch=2).base_offset == 2
    machine.reopen(log_start_offset=2)
    assert machine.values() == [b"new"]
