"""Append, read, roll, and the offsets of a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch
from barnabas.model.ids import Uuid
from barnabas.storage.log import PartitionLog, UnexpectedOffset
from barnabas.wire.batch import iterate, read_header
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.disk import DiskFailure, DiskFull

if TYPE_CHECKING:
    from .conftest import Machine

HOUR_MS = 3_600_000


def test_an_empty_log_starts_and_ends_at_zero(machine: Machine) -> None:
    log = machine.log
    assert (log.log_start_offset, log.end_offset, log.high_watermark, log.last_stable_offset) == (0, 0, 0, 0)
    assert log.size_bytes == 0
    assert machine.raw(0) == b""
    assert log.latest_epoch == -1


def test_batches_get_the_next_offsets_and_the_leaders_epoch(machine: Machine) -> None:
    first = machine.append(b"a", b"b", leader_epoch=3)
    second = machine.append(b"c", leader_epoch=4)
    assert (first.base_offset, first.last_offset, first.is_duplicate) == (0, 1, False)
    assert (second.base_offset, second.last_offset) == (2, 2)
    assert machine.log.end_offset == 3
    headers = [header for _, header in iterate(machine.raw(0))]
    assert [(header.base_offset, header.leader_epoch) for header in headers] == [(0, 3), (2, 4)]
    assert machine.values() == [b"a", b"b", b"c"]
    assert machine.log.end_of_epoch(3) == (3, 2)
    assert machine.log.end_of_epoch(4) == (4, 3)


def test_what_is_written_is_what_came_but_for_offset_and_epoch(machine: Machine) -> None:
    batch = machine.batch(b"a", b"b")
    before = bytes(batch)
    machine.append_batch(batch, leader_epoch=5)
    stored = machine.raw(0)
    assert stored[16:] == before[16:]
    assert machine.log.size_bytes == len(before)


def test_reading_starts_at_the_batch_that_holds_the_offset(small: Machine) -> None:
    for number in range(60):
        small.append(*[b"%d" % number] * 3)
    assert len(small.log.segments) > 5
    for offset in range(180):
        first = read_header(small.raw(offset))
        assert first.base_offset <= offset <= first.last_offset


def test_reading_outside_of_the_log_is_out_of_range(machine: Machine) -> None:
    machine.append(b"a")
    for offset in (-1, 2):
        with pytest.raises(ApiError) as raised:
            machine.raw(offset)
        assert raised.value.error is errors.OFFSET_OUT_OF_RANGE
    assert machine.raw(1) == b""


def test_nothing_at_or_above_the_bound_is_read(small: Machine) -> None:
    for number in range(40):
        small.append(b"%d" % number, b"more")
    for bound in range(0, 81, 3):
        for offset in range(0, 80, 7):
            read = decode_all(small.raw(offset, end=bound))
            assert all(record.offset < bound for record in read)
            if offset < bound - bound % 2:
                assert read


def test_the_bound_is_cheap_where_readers_stand(machine: Machine) -> None:
    for number in range(20):
        machine.append(b"%d" % number)
    first = machine.log.read(5, size_bytes_max=1 << 20, end_offset_max=17, at_least_one=True)
    again = machine.log.read(5, size_bytes_max=1 << 20, end_offset_max=17, at_least_one=True)
    assert first == again
    assert first.next_offset_bound == 17


def test_the_size_limit_is_kept_but_for_the_first_batch(machine: Machine) -> None:
    for _ in range(10):
        machine.append(b"x" * 100)
    whole = machine.raw(0)
    one = len(whole) // 10
    assert machine.raw(0, size_bytes_max=one * 3 + 5) == whole[: one * 3 + 5]
    assert machine.raw(0, size_bytes_max=1) == whole[:one]
    assert machine.raw(0, size_bytes_max=10, one=False) == b"", "a lone cut batch is of no use"
    assert machine.raw(0, size_bytes_max=0, one=False) == b""


def test_the_next_offset_bound_is_not_below_what_was_read(small: Machine) -> None:
    for number in range(50):
        small.append(b"%d" % number)
    for offset in range(50):
        for size in (1, 100, 250, 1 << 20):
            read = small.log.read(offset, size_bytes_max=size, end_offset_max=45, at_least_one=True)
            if read.records:
                data = read.records.file.read(read.records.position, read.records.size_bytes)
                assert all(record.offset < read.next_offset_bound <= 45 for record in decode_all(data))


def test_duplicates_are_answered_with_their_offsets(machine: Machine) -> None:
    machine.append(b"other")
    first = machine.append(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    machine.append(b"other")
    again = machine.append(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    assert again.is_duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert machine.log.end_offset == 4


def test_a_batch_that_is_refused_leaves_no_trace(machine: Machine) -> None:
    machine.append(b"a", producer_id=9, producer_epoch=0, base_sequence=0)
    size_bytes = machine.log.size_bytes
    with pytest.raises(ApiError):
        machine.append(b"b", producer_id=9, producer_epoch=0, base_sequence=5)
    assert (machine.log.end_offset, machine.log.size_bytes) == (1, size_bytes)


def test_a_batch_larger_than_a_segment_is_refused(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=200)
    machine.open()
    with pytest.raises(ApiError) as raised:
        machine.append(b"x" * 300)
    assert raised.value.error is errors.RECORD_LIST_TOO_LARGE


def test_a_full_segment_rolls(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_bytes=1000)
    machine.open()
    size_bytes = len(machine.batch(b"x" * 100))
    for _ in range(1000 // size_bytes + 1):
        machine.append(b"x" * 100)
    assert [segment.base_offset for segment in machine.log.segments.all()] == [0, 1000 // size_bytes]
    assert machine.names(".log") == [f"{0:020d}.log", f"{1000 // size_bytes:020d}.log"]
    assert all(segment.size_bytes <= 1000 for segment in machine.log.segments.all())


def test_a_segment_rolls_by_the_time_of_its_first_record(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_ms=HOUR_MS, message_timestamp_after_max_ms=10 * HOUR_MS)
    machine.open()
    now = machine.clock.now_ms
    machine.append(b"a", timestamp=now)
    machine.append(b"b", timestamp=now + HOUR_MS)
    assert len(machine.log.segments) == 1
    machine.append(b"c", timestamp=now + HOUR_MS + 1)
    assert len(machine.log.segments) == 2
    machine.restart()
    machine.append(b"d", timestamp=now + HOUR_MS + 2)
    assert len(machine.log.segments) == 2
    machine.append(b"e", timestamp=now + 2 * HOUR_MS + 2)
    assert len(machine.log.segments) == 3


def test_a_segment_without_timestamps_rolls_by_the_clock(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(segment_ms=HOUR_MS)
    machine.open()
    machine.append(b"a", timestamp=-1)
    machine.clock.now_ms += HOUR_MS
    machine.append(b"b", timestamp=-1)
    assert len(machine.log.segments) == 1
    machine.clock.now_ms += 1
    machine.append(b"c", timestamp=-1)
    assert len(machine.log.segments) == 2


def test_a_full_index_rolls_the_segment(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(index_interval_bytes=0, segment_index_bytes=24)
    machine.open()
    for _ in range(10):
        machine.append(b"a")
    assert len(machine.log.segments) > 1
    assert all(segment.offset_index.count <= 3 for segment in machine.log.segments.all())
    assert machine.values() == [b"a"] * 10


@pytest.mark.parametrize(("offset", "second_base"), [(2**31, 1), (2**31 + 1, 2**31 + 1)])
def test_a_segment_rolls_before_a_relative_offset_overflows(machine: Machine, offset: int, second_base: int) -> None:
    first = machine.batch(b"a", leader_epoch=0)
    far = encode_batch([(0, b"k", b"v", ())], base_offset=offset, leader_epoch=0)
    machine.log.append_as_follower(first, leader_epoch_max=None, now_ms=machine.clock.now_ms)
    machine.log.append_as_follower(far, leader_epoch_max=None, now_ms=machine.clock.now_ms)
    assert [segment.base_offset for segment in machine.log.segments.all()] == [0, second_base]
    assert machine.log.end_offset == offset + 1


def test_new_settings_take_effect(machine: Machine) -> None:
    machine.append(b"x" * 100)
    machine.log.settings = type(machine.settings)(segment_bytes=300)
    machine.append(b"x" * 100)
    assert len(machine.log.segments) == 2


def test_the_high_watermark_only_rises_and_not_past_the_end(machine: Machine) -> None:
    machine.append(b"a", b"b", b"c")
    assert machine.log.advance_high_watermark(2)
    assert not machine.log.advance_high_watermark(1)
    assert machine.log.advance_high_watermark(10)
    assert machine.log.high_watermark == 3


# --- following ----------------------------------------------------------------------------------------------------


def leader_bytes(machine: Machine) -> bytes:
    return b"".join(bytes(segment.read_batch(0, segment.size_bytes)) for segment in machine.log.segments.all())


def test_a_follower_keeps_the_leaders_bytes(machine: Machine, new_machine: Callable[..., Machine]) -> None:
    for number in range(30):
        machine.append(b"%d" % number, leader_epoch=number // 10, producer_id=5, producer_epoch=0, base_sequence=number)
    follower = new_machine(segment_bytes=700, index_interval_bytes=100)
    follower.open()
    data = leader_bytes(machine)
    appended = follower.log.append_as_follower(data[:-5], leader_epoch_max=9, now_ms=0)
    assert (appended.base_offset, appended.last_offset) == (0, 28)
    follower.log.append_as_follower(
        data[data.rindex(b"29") - 70 :][-len(machine.raw(29)) :], leader_epoch_max=9, now_ms=0
    )
    assert leader_bytes(follower) == data
    assert follower.log.epochs.entries() == machine.log.epochs.entries() == [(0, 0), (1, 10), (2, 20)]
    assert follower.log.producers.by_id[5].batches == machine.log.producers.by_id[5].batches
    assert len(follower.log.segments) > 1
    assert follower.values() == machine.values()


def test_a_follower_stops_at_a_batch_of_a_newer_epoch(machine: Machine, new_machine: Callable[..., Machine]) -> None:
    machine.append(b"a", leader_epoch=1)
    machine.append(b"b", leader_epoch=2)
    follower = new_machine()
    follower.open()
    follower.log.append_as_follower(leader_bytes(machine), leader_epoch_max=1, now_ms=0)
    assert follower.values() == [b"a"]


def test_a_follower_refuses_what_does_not_follow(machine: Machine, new_machine: Callable[..., Machine]) -> None:
    for value in (b"a", b"b", b"c"):
        machine.append(value)
    data = leader_bytes(machine)
    one = len(data) // 3
    follower = new_machine()
    follower.open()
    follower.log.append_as_follower(data[: 2 * one], leader_epoch_max=None, now_ms=0)
    with pytest.raises(UnexpectedOffset) as raised:
        follower.log.append_as_follower(data[one:], leader_epoch_max=None, now_ms=0)
    assert raised.value.first_offset == 1
    with pytest.raises(CorruptBatch):
        follower.log.append_as_follower(data[2 * one :] + data[:one], leader_epoch_max=None, now_ms=0)
    with pytest.raises(CorruptBatch):
        follower.log.append_as_follower(data[2 * one : -1] + b"?", leader_epoch_max=None, now_ms=0)
    assert follower.values() == [b"a", b"b"]


# --- transactions -------------------------------------------------------------------------------------------------


def transactional(machine: Machine, producer_id: int, sequence: int, *values: bytes) -> None:
    machine.append(*values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def test_the_last_stable_offset_waits_for_the_oldest_open_transaction(machine: Machine) -> None:
    machine.append(b"plain")
    transactional(machine, 1, 0, b"a")
    transactional(machine, 2, 0, b"b")
    machine.log.advance_high_watermark(3)
    assert machine.log.last_stable_offset == 1
    machine.end_transaction(1, is_abort=False)
    machine.log.advance_high_watermark(4)
    assert machine.log.last_stable_offset == 2
    machine.end_transaction(2, is_abort=True)
    assert machine.log.last_stable_offset == 2
    machine.log.advance_high_watermark(5)
    assert machine.log.last_stable_offset == 5


def test_aborted_transactions_are_told_to_readers_of_their_range(small: Machine) -> None:
    for round_number in range(12):
        transactional(small, 1, round_number, b"%d" % round_number)
        small.append(b"noise")
        small.end_transaction(1, is_abort=round_number % 2 == 0)
    aborted = small.log.aborted_transactions(0, small.log.end_offset)
    assert [each.first_offset for each in aborted] == [0, 6, 12, 18, 24, 30]
    assert {each.producer_id for each in aborted} == {1}
    assert [each.first_offset for each in small.log.aborted_transactions(7, 13)] == [6, 12]
    assert small.log.aborted_transactions(9, 10) == []
    small.restart()
    assert small.log.aborted_transactions(0, small.log.end_offset) == aborted
    small.reopen()
    assert small.log.aborted_transactions(0, small.log.end_offset) == aborted


def test_a_garbage_index_of_aborted_transactions_is_rebuilt(small: Machine) -> None:
    for number in range(12):
        transactional(small, 1, number, b"%d" % number)
        small.end_transaction(1, is_abort=True)
    aborted = small.log.aborted_transactions(0, small.log.end_offset)
    small.restart()
    for name in small.names(".txnindex"):
        small.overwrite(name, b"garbage")
    assert len(small.names(".txnindex")) > 2
    assert small.log.aborted_transactions(0, small.log.end_offset) == aborted
    for name in small.names(".txnindex"):
        small.overwrite(name, b"garbage")
    small.reopen(was_clean=True)
    small.log.truncate_to(10)
    assert small.log.aborted_transactions(0, 10) == aborted[:5]


def test_a_transaction_survives_a_restart(machine: Machine) -> None:
    transactional(machine, 1, 0, b"a")
    for start in (machine.restart, machine.reopen):
        start()
        machine.log.advance_high_watermark(1)
        assert machine.log.last_stable_offset == 0
        assert machine.log.producers.has_open_transaction(1)
    machine.end_transaction(1, is_abort=False)
    machine.log.advance_high_watermark(2)
    assert machine.log.last_stable_offset == 2


# --- identity and failure -----------------------------------------------------------------------------------------


def test_the_topic_id_is_kept(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine()
    topic_id = Uuid(bytes(range(16)))
    machine.open(topic_id=topic_id)
    assert machine.restart().topic_id == topic_id
    with pytest.raises(ApiError) as raised:
        machine.open(topic_id=Uuid(bytes(16)))
    assert raised.value.error is errors.INCONSISTENT_TOPIC_ID


def test_a_failed_write_ends_the_log_for_good(machine: Machine) -> None:
    failures: list[tuple[PartitionLog, DiskFailure]] = []
    machine.log.on_failure = lambda log, error: failures.append((log, error))
    machine.append(b"a")
    machine.disk.fail_next_write(machine.directory)
    for _ in range(2):
        with pytest.raises(DiskFailure):
            machine.append(b"b")
    assert len(failures) == 1
    assert machine.log.end_offset == 1


def test_a_full_disk_is_no_failed_disk(machine: Machine) -> None:
    machine.append(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    machine.disk.capacity_bytes = machine.disk.used_bytes()
    with pytest.raises(DiskFull):
        machine.append(b"b", producer_id=1, producer_epoch=0, base_sequence=1)
    assert machine.log.failure is None
    assert machine.values() == [b"a"]
    machine.disk.capacity_bytes = None
    assert machine.append(b"b", producer_id=1, producer_epoch=0, base_sequence=1).base_offset == 1


def test_readers_keep_files_open_that_are_not_used_any_more(new_machine: Callable[..., Machine]) -> None:
    from barnabas.storage.open_segments import OpenSegments

    machine = new_machine(segment_bytes=200)
    opened = OpenSegments(count_max=2)
    machine.open(open_segments=opened)
    for number in range(12):
        machine.append(b"%d" % number * 50)
    held = machine.log.read(0, size_bytes_max=1000, end_offset_max=12, at_least_one=True).records
    assert held is not None
    for offset in range(1, 11):
        assert machine.raw(offset)
    assert held.file.read(held.position, held.size_bytes)
    assert opened.retired_count == 1
    del held
    assert machine.raw(0)
    assert opened.retired_count == 0
    asyncio.run(machine.log.close())
