"""Whatever a crash leaves, the log that comes back is sound and holds what was synced."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.storage.segment import Segment
from barnabas.wire.batch import iterate

if TYPE_CHECKING:
    from .conftest import Machine

FIRST = f"{0:020d}"


def filled(machine: Machine, count: int = 40) -> list[bytes]:
    values = [b"value %d" % number for number in range(count)]
    for number, value in enumerate(values):
        machine.append(value, leader_epoch=number // 15, producer_id=3, producer_epoch=0, base_sequence=number)
    return values


def check_indexes(machine: Machine) -> None:
    """Every entry of every index says what a scan of the log says."""
    for segment in machine.log.segments.all():
        batches = dict(segment.headers())
        fresh = Segment(
            machine.disk, machine.directory, segment.base_offset, machine.settings, size_bytes=segment.size_bytes
        )
        fresh.rebuild_indexes()
        for relative_offset, position in zip(segment.offset_index.offsets, segment.offset_index.positions, strict=True):
            assert batches[position].last_offset == segment.base_offset + relative_offset
        assert segment.offset_index.offsets == fresh.offset_index.offsets
        assert segment.max_timestamp == fresh.max_timestamp
        fresh.close()


def test_a_log_comes_back_after_its_process_was_killed(small: Machine) -> None:
    values = filled(small)
    before = (small.log.end_offset, small.log.epochs.entries(), small.log.size_bytes)
    small.reopen()
    assert (small.log.end_offset, small.log.epochs.entries(), small.log.size_bytes) == before
    assert small.values() == values
    assert small.append(b"value 39", producer_id=3, producer_epoch=0, base_sequence=39).is_duplicate
    assert small.append(b"next", producer_id=3, producer_epoch=0, base_sequence=40).base_offset == 40
    check_indexes(small)


def test_a_log_comes_back_after_a_clean_shutdown(small: Machine) -> None:
    values = filled(small)
    small.restart()
    assert small.values() == values
    assert small.log.recovery_point == small.log.end_offset == 40
    assert small.append(b"value 39", producer_id=3, producer_epoch=0, base_sequence=39).is_duplicate
    assert small.log.epochs.entries() == [(0, 0), (1, 15), (2, 30)]
    check_indexes(small)


@pytest.mark.parametrize("come_back", ["reopen", "restart"])
def test_all_that_a_producer_may_send_again_is_known_again(small: Machine, come_back: str) -> None:
    """Its last five batches; whoever knew only the last would refuse those before it, and take them for lost."""
    filled(small)
    getattr(small, come_back)()
    for number in range(35, 40):
        again = small.append(b"value %d" % number, producer_id=3, producer_epoch=0, base_sequence=number)
        assert (again.is_duplicate, again.base_offset) == (True, number)


def test_all_that_a_producer_may_send_again_is_known_after_a_cut(small: Machine) -> None:
    filled(small)
    small.restart()
    small.log.truncate_to(38)
    for number in range(33, 38):
        again = small.append(b"value %d" % number, producer_id=3, producer_epoch=0, base_sequence=number)
        assert (again.is_duplicate, again.base_offset) == (True, number)


def test_a_clean_start_reads_no_batch_but_the_last(small: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(small)
    read: list[int] = []
    headers = Segment.headers
    monkeypatch.setattr(
        Segment, "headers", lambda self, position=0, end=None: read.append(position) or headers(self, position, end)
    )
    small.restart()
    assert len(read) == 1
    assert read[0] > 0


def test_the_last_batch_may_be_cut_at_every_byte(machine: Machine) -> None:
    for value in (b"first", b"second", b"last one"):
        machine.append(value, producer_id=3, producer_epoch=0, base_sequence=machine.log.end_offset)
    whole = machine.content(f"{FIRST}.log")
    starts = [position for position, _ in iterate(whole)]
    for size in range(starts[2], len(whole)):
        machine.disk.kill()
        machine.overwrite(f"{FIRST}.log", whole[:size])
        machine.open()
        assert machine.log.end_offset == 2
        assert machine.values() == [b"first", b"second"]
        assert machine.log.size_bytes == starts[2]
        assert machine.append(b"again", producer_id=3, producer_epoch=0, base_sequence=2).base_offset == 2


def test_a_changed_bit_ends_the_log_before_it(small: Machine) -> None:
    values = filled(small)
    segment = small.log.segments[1]
    position, header = list(segment.headers())[1]
    small.disk.kill()
    small.disk.flip_bit(segment.path(".log"), position + header.size_bytes - 3, 2)
    small.open()
    assert small.log.end_offset == header.base_offset
    assert small.values() == values[: header.base_offset]
    assert len(small.log.segments) == 2
    assert max(int(name[:20]) for name in small.names(".log")) == segment.base_offset
    assert small.log.epochs.latest_epoch == (header.base_offset - 1) // 15
    check_indexes(small)


def test_what_lies_below_the_recovery_point_is_not_read_again(small: Machine) -> None:
    filled(small)
    first = small.log.segments[0]
    small.disk.kill()
    small.disk.flip_bit(first.path(".log"), 70, 1)
    small.open(recovery_point=small.log.segments[1].base_offset)
    assert small.log.end_offset == 40


def test_zeros_behind_the_last_batch_are_cut_off(machine: Machine) -> None:
    machine.append(b"a")
    content = machine.content(f"{FIRST}.log")
    machine.overwrite(f"{FIRST}.log", content + bytes(500))
    machine.reopen()
    assert machine.log.size_bytes == len(content)
    assert machine.values() == [b"a"]


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt(small: Machine, suffix: str, was_clean: bool) -> None:
    values = filled(small)
    small.restart()
    for name in small.names(suffix):
        small.disk.remove(f"{small.directory}/{name}")
    small.disk.kill()
    small.open(was_clean=was_clean)
    assert small.values() == values
    assert small.log.offset_for_time(small.clock.now_ms) is not None
    check_indexes(small)


@pytest.mark.parametrize("was_clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("seed", range(5))
def test_a_garbage_index_is_rebuilt(small: Machine, suffix: str, was_clean: bool, seed: int) -> None:
    values = filled(small)
    small.restart()
    chance = random.Random(seed)
    for name in small.names(suffix):
        if small.content(name):
            small.overwrite(name, chance.randbytes(chance.randrange(1, 60)))
    small.disk.kill()
    small.open(was_clean=was_clean)
    assert small.log.end_offset == 40
    assert small.values() == values
    found = small.log.offset_for_time(small.clock.now_ms)
    assert found is not None
    assert found.offset == 0


def test_a_stale_index_that_points_into_a_batch_is_rebuilt(small: Machine) -> None:
    values = filled(small)
    small.restart()
    name = small.names(".index")[1]
    content = bytearray(small.content(name))
    content[7] += 1
    small.overwrite(name, bytes(content))
    small.disk.kill()
    small.open(was_clean=True)
    assert small.values() == values


def test_missing_and_torn_snapshots_cost_nothing_but_time(small: Machine) -> None:
    filled(small)
    small.restart()
    for number, name in enumerate(small.names(".snapshot")):
        if number % 2:
            small.disk.remove(f"{small.directory}/{name}")
        else:
            small.overwrite(name, small.content(name)[:-1])
    small.reopen()
    assert small.log.producers.by_id[3].last_sequence == 39


def test_a_missing_or_torn_epoch_file_is_made_from_the_batches(small: Machine) -> None:
    filled(small)
    small.restart()
    entries = small.log.epochs.entries()
    small.disk.remove(f"{small.directory}/leader-epoch-checkpoint")
    small.disk.kill()
    assert small.open(was_clean=True).epochs.entries() == entries
    small.overwrite("leader-epoch-checkpoint", b"0\n5\n0 0")
    small.disk.kill()
    assert small.open(was_clean=True).epochs.entries() == entries


def test_other_files_are_left_alone_and_leftovers_go(small: Machine) -> None:
    values = filled(small)
    extras = ("notes.txt", "00000000000000000007-0000000001.checkpoint.deleted", "1.log", "quorum-state")
    leftovers = (
        f"{FIRST}.log.deleted",
        f"{7:020d}.log.cleaned",
        f"{999:020d}.index",
        f"{999:020d}.timeindex",
        f"{999:020d}.txnindex",
    )
    for name in (*extras, *leftovers):
        small.overwrite(name, b"something")
    small.reopen()
    assert small.values() == values
    names = set(small.names())
    assert set(extras) <= names
    assert not names & set(leftovers)


def test_a_swap_that_had_begun_is_finished(small: Machine) -> None:
    values = filled(small)
    small.restart()
    first, second = small.log.segments[0], small.log.segments[1]
    merged = small.content(f"{first.base_offset:020d}.log") + small.content(f"{second.base_offset:020d}.log")
    small.overwrite(f"{FIRST}.log.swap", merged)
    small.disk.remove(f"{small.directory}/{FIRST}.log")
    small.reopen()
    assert f"{second.base_offset:020d}.log" not in small.names()
    assert small.log.segments[0].size_bytes == len(merged)
    assert small.values() == values


def test_a_swap_of_an_unfinished_split_is_undone(small: Machine) -> None:
    values = filled(small)
    small.restart()
    small.overwrite(f"{5:020d}.log.swap", b"half")
    small.overwrite(f"{3:020d}.log.cleaned", b"half")
    small.reopen()
    assert small.values() == values
    assert not [name for name in small.names() if name.endswith((".swap", ".cleaned"))]


def test_a_segment_that_was_lost_takes_the_later_ones_with_it(small: Machine) -> None:
    values = filled(small)
    lost = small.log.segments[2].base_offset
    small.disk.remove(f"{small.directory}/{lost:020d}.log")
    small.reopen()
    assert small.log.end_offset == lost
    assert small.values() == values[:lost]


def test_a_compacted_log_may_have_gaps_between_segments(new_machine: Callable[..., Machine]) -> None:
    """Where Kafka's cleaner has been, as its checkpoint says."""
    machine = new_machine(segment_bytes=600, index_interval_bytes=100, cleanup_policy=("compact",))
    machine.open()
    values = filled(machine)
    lost, after = machine.log.segments[2].base_offset, machine.log.segments[3].base_offset
    machine.disk.remove(f"{machine.directory}/{lost:020d}.log")
    machine.reopen(cleaned_offset=after)
    assert machine.values() == values[:lost] + values[after:]


def test_segments_that_come_back_after_a_truncation_do_not_count(small: Machine) -> None:
    filled(small)
    base = small.log.segments[3].base_offset
    old = small.content(f"{base:020d}.log")
    small.log.truncate_to(5)
    for _ in range(5, base):
        small.append(b"new", leader_epoch=9)
    small.disk.kill()
    small.overwrite(f"{base:020d}.log", old)
    small.open()
    assert small.log.end_offset == base
    assert small.log.epochs.latest_epoch == 9


def test_a_log_whose_start_lies_above_its_end_begins_anew_there(small: Machine) -> None:
    filled(small)
    small.reopen(log_start_offset=100)
    assert (small.log.log_start_offset, small.log.end_offset) == (100, 100)
    assert small.append(b"a").base_offset == 100
    assert small.names(".log") == [f"{100:020d}.log"]


def test_a_log_starts_where_its_checkpoint_says(small: Machine) -> None:
    values = filled(small)
    small.reopen(log_start_offset=17)
    assert small.log.log_start_offset == 17
    assert small.values() == values[17:]


@pytest.mark.parametrize("seed", range(60))
def test_what_was_flushed_survives_a_power_cut_at_any_point(new_machine: Callable[..., Machine], seed: int) -> None:
    chance = random.Random(seed)
    machine = new_machine(segment_bytes=700, index_interval_bytes=100)
    machine.open()
    values: list[bytes] = []
    for life in range(3):
        durable = machine.log.recovery_point
        known = machine.log.recovery_checkpoint
        for _ in range(chance.randrange(30)):
            value = b"%d/%d" % (life, len(values)) + b"x" * chance.randrange(200)
            machine.append(value, leader_epoch=life, producer_id=1, producer_epoch=life, base_sequence=_)
            values.append(value)
            if chance.random() < 0.15:
                machine.flush()
                durable = machine.log.end_offset
            if chance.random() < 0.3:
                known = machine.log.recovery_checkpoint
        # The recovery point on disk may be older than the one in memory, never newer.
        machine.crash(seed * 31 + life)
        machine.open(recovery_point=known)
        end = machine.log.end_offset
        assert durable <= end <= len(values)
        assert machine.values() == values[:end]
        check_indexes(machine)
        del values[end:]
