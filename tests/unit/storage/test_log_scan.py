"""What a checksum does not cover is told by the neighbours: offsets, epochs, and lengths that are lies."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack, pack_into
from typing import TYPE_CHECKING

import pytest

from barnabas.storage.batch_file import REBUILD_BYTES
from barnabas.wire.batch import iterate

if TYPE_CHECKING:
    from conftest import Machine

LOG = f"{0:020d}.log"


def damage(machine: Machine, index: int, position: int, layout: str, value: int) -> None:
    """Write a field of the header of one batch."""
    content = bytearray(machine.content(LOG))
    start = [at for at, _ in iterate(content)][index]
    pack_into(layout, content, start + position, value)
    machine.overwrite(LOG, bytes(content))


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("bit", [0, 1, 10, 33, 62, 63])
def test_a_batch_whose_offset_has_rotted_goes(machine: Machine, index: int, bit: int) -> None:
    for number in range(5):
        machine.append(b"%d" % number)
    machine.flush()
    damage(machine, index, 0, ">Q", index ^ 1 << bit)
    machine.reopen()
    assert machine.values() == [b"%d" % number for number in range(index)]
    assert machine.log.end_offset == index


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("epoch", [-(2**31), 0, 1, 2, 4, 6, 1 << 30])
def test_a_batch_whose_epoch_has_rotted_goes(machine: Machine, index: int, epoch: int) -> None:
    for number in range(5):
        machine.append(b"%d" % number, leader_epoch=5)
    machine.flush()
    damage(machine, index, 12, ">i", epoch)
    machine.reopen()
    assert machine.log.end_offset == index
    assert machine.log.epochs.entries() == ([(5, 0)] if index else [])


def test_epochs_are_written_before_their_batches(machine: Machine) -> None:
    """A process that is killed leaves a file that knows every epoch in the log."""
    machine.append(b"a", leader_epoch=1)
    machine.append(b"b", leader_epoch=3)
    assert machine.content("leader-epoch-checkpoint") == b"0\n2\n1 0\n3 1\n"
    machine.reopen()
    assert machine.values() == [b"a", b"b"]


def test_a_truncated_log_goes_on_in_an_older_epoch(machine: Machine) -> None:
    """The file must not say of the new batches what was true of those that were cut off."""
    for number in range(10):
        machine.append(b"%d" % number, leader_epoch=1 if number < 6 else 2)
    machine.flush()
    machine.log.truncate_to(4)
    machine.append(b"again", leader_epoch=1)
    for number in range(6):
        machine.append(b"%d" % number, leader_epoch=1)
    machine.reopen()
    assert machine.log.end_offset == 11


def test_without_a_file_of_epochs_the_batches_tell_them(machine: Machine) -> None:
    for number in range(4):
        machine.append(b"%d" % number, leader_epoch=number)
    machine.disk.remove(f"{machine.directory}/leader-epoch-checkpoint")
    machine.reopen()
    assert machine.log.epochs.entries() == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert machine.log.end_offset == 4


def test_a_batch_larger_than_a_piece_is_checked_as_well(new_machine: Callable[..., Machine]) -> None:
    machine = new_machine(max_message_bytes=10 * REBUILD_BYTES)
    machine.open()
    machine.append(b"small")
    machine.append(bytes(3 * REBUILD_BYTES))
    machine.append(b"last")
    machine.reopen()
    assert machine.log.end_offset == 3
    content = bytearray(machine.content(LOG))
    content[2 * REBUILD_BYTES] ^= 1
    machine.overwrite(LOG, bytes(content))
    machine.reopen()
    assert machine.log.end_offset == 1


def test_a_length_that_is_a_lie_is_not_believed(machine: Machine) -> None:
    machine.append(b"a")
    content = machine.content(LOG)
    machine.overwrite(LOG, content + pack(">qiib", 1, 2**31 - 1, 0, 2) + bytes(100_000))
    machine.reopen()
    assert machine.values() == [b"a"]
    assert machine.content(LOG) == content


def test_gaps_of_a_compacted_log_stay(machine: Machine) -> None:
    for number in range(5):
        machine.append(b"%d" % number)
    machine.flush()
    batches = machine.content(LOG)
    starts = [at for at, _ in iterate(batches)]
    machine.overwrite(LOG, batches[: starts[1]] + batches[starts[3] :])
    machine.reopen(cleaned_offset=5)
    assert [record.offset for record in machine.read_all()] == [0, 3, 4]
    # In the middle a gap is believed of any log: a follower may have fetched it from a leader that compacts.
    machine.reopen()
    assert [record.offset for record in machine.read_all()] == [0, 3, 4]


def test_a_follower_keeps_what_a_compacting_leader_gave_it(
    machine: Machine, new_machine: Callable[..., Machine]
) -> None:
    """There are gaps within its segments and between them, and its own cleaner has never been there."""
    for number in range(40):
        machine.append(b"%d" % number)
    batches = machine.raw(0)
    kept = [(at, header) for at, header in iterate(batches) if header.base_offset % 3 == 0]
    follower = new_machine(segment_bytes=300)
    follower.open()
    for at, header in kept:
        records = batches[at : at + header.size_bytes]
        follower.log.append_as_follower(records, leader_epoch_max=None, now_ms=follower.clock.now_ms)
    assert len(follower.log.segments) > 3
    follower.reopen()
    assert [record.offset for record in follower.read_all()] == [header.base_offset for _, header in kept]


def test_a_gap_where_a_follower_begins_a_segment_is_within_that_segment(new_machine: Callable[..., Machine]) -> None:
    """It is the only one, so nothing before it says that the leader compacts."""
    follower = new_machine(segment_bytes=300)
    follower.open()
    offsets = [0, 1, 2, 10, 11, 12, 13, 14, 15]
    for offset in offsets:
        records = follower.batch(b"x" * 20, base_offset=offset)
        follower.log.append_as_follower(records, leader_epoch_max=None, now_ms=follower.clock.now_ms)
    assert [segment.base_offset for segment in follower.log.segments.all()][:2] == [0, 3]
    follower.reopen()
    assert [record.offset for record in follower.read_all()] == offsets


def test_records_that_are_lost_between_two_segments_are_no_gap_of_compaction(
    new_machine: Callable[..., Machine],
) -> None:
    """The part that was compacted ends below: what comes after a lost segment has no place in the log."""
    machine = new_machine(segment_bytes=300, index_interval_bytes=100)
    machine.open()
    for number in range(30):
        machine.append(b"%d" % number)
    names = machine.names(".log")
    lost = names[-3]
    machine.overwrite(lost, b"")
    machine.reopen(cleaned_offset=4)
    assert machine.log.end_offset == int(lost[:20])


def test_a_torn_file_of_epochs_is_not_believed(machine: Machine) -> None:
    """The last offset in it lacks its last digits, and would speak against sound batches."""
    for number in range(60):
        machine.append(b"%d" % number, leader_epoch=1 if number < 53 else 2)
    content = machine.content("leader-epoch-checkpoint")
    assert content == b"0\n2\n1 0\n2 53\n"
    for size in range(len(content)):
        machine.overwrite("leader-epoch-checkpoint", content[:size])
        machine.reopen()
        assert machine.log.end_offset == 60
        assert machine.log.epochs.entries() == [(1, 0), (2, 53)]


def test_a_gap_below_the_start_of_a_log_is_no_fault(machine: Machine) -> None:
    """Apache Kafka leaves one when it cuts a log to its start within a batch: the segment keeps its name."""
    machine.log.append_as_follower(machine.batch(b"a", base_offset=2), leader_epoch_max=None, now_ms=0)
    machine.reopen(log_start_offset=2)
    assert machine.values() == [b"a"]
    assert machine.log.end_offset == 3
