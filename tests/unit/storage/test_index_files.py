"""The index files of the active segment are there while it is written to, and whatever they say is true."""

from __future__ import annotations

import asyncio
import random
from struct import iter_unpack
from typing import TYPE_CHECKING

import pytest

from barnabas.storage.batch_file import INDEX, LOG, TIME_INDEX
from barnabas.storage.faults import Faults
from barnabas.storage.index_files import catch_up
from barnabas.world.disk import DiskFailure, DiskFull

if TYPE_CHECKING:
    from .conftest import Machine


@pytest.fixture
def wide(new_machine: type[Machine]) -> Machine:
    """One segment for everything, and an index entry for almost every batch."""
    machine = new_machine(index_interval_bytes=50)
    machine.open()
    return machine


def fill(machine: Machine, count: int) -> None:
    for _ in range(count):
        machine.append(b"x" * 40, timestamp=1_700_000_000_000 + machine.log.end_offset)


def written(machine: Machine) -> tuple[list[int], list[int]]:
    """The relative offsets in the two files, after every entry has been checked against the log."""
    segment = machine.log.segments.active
    batches = dict(segment.headers())
    offsets = [offset for offset, _ in iter_unpack(">ii", machine.content(f"{segment.base_offset:020d}.index"))]
    for offset, position in iter_unpack(">ii", machine.content(f"{segment.base_offset:020d}.index")):
        assert batches[position].last_offset == segment.base_offset + offset
    time_of = {header.last_offset - segment.base_offset: header.max_timestamp for header in batches.values()}
    times = [offset for _, offset in iter_unpack(">qi", machine.content(f"{segment.base_offset:020d}.timeindex"))]
    for timestamp, offset in iter_unpack(">qi", machine.content(f"{segment.base_offset:020d}.timeindex")):
        assert time_of[offset] == timestamp
    return offsets, times


def catch_up_now(machine: Machine) -> None:
    asyncio.run(catch_up([machine.log], Faults(machine.disk).contained))


def test_a_new_segment_has_empty_indexes(small: Machine) -> None:
    assert small.content(f"{0:020d}.index") == small.content(f"{0:020d}.timeindex") == b""
    fill(small, 20)
    active = small.log.segments.active.base_offset
    assert active > 0
    assert small.content(f"{active:020d}.index") == b""


def test_entries_follow_in_groups(wide: Machine) -> None:
    fill(wide, 10)
    assert written(wide) == ([], [])
    catch_up_now(wide)
    first, times = written(wide)
    assert len(first) == wide.log.segments.active.offset_index.count >= 8
    assert len(times) == wide.log.segments.active.time_index.count
    fill(wide, 10)
    assert written(wide)[0] == first
    wide.flush()
    assert written(wide)[0][: len(first)] == first
    assert len(written(wide)[0]) == wide.log.segments.active.offset_index.count > len(first)


def test_nothing_is_opened_where_nothing_is_new(wide: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(wide, 10)
    catch_up_now(wide)
    monkeypatch.setattr(wide.disk, "open", None)
    catch_up_now(wide)


@pytest.mark.parametrize("offset", [0, 1, 7, 12, 19])
def test_a_cut_is_a_cut_of_the_files_too(wide: Machine, offset: int) -> None:
    fill(wide, 20)
    catch_up_now(wide)
    wide.log.truncate_to(offset)
    entries, times = written(wide)
    assert all(relative_offset < offset for relative_offset in [*entries, *times])
    fill(wide, 20)
    catch_up_now(wide)
    assert len(written(wide)[0]) == wide.log.segments.active.offset_index.count


def test_a_cut_back_into_a_closed_segment_opens_its_files_again(small: Machine) -> None:
    fill(small, 20)
    small.log.truncate_to(2)
    assert small.log.segments.active.base_offset == 0
    written(small)
    fill(small, 2)
    catch_up_now(small)
    assert written(small)[0]


@pytest.mark.parametrize("seed", range(20))
def test_after_a_crash_the_files_are_made_anew(wide: Machine, seed: int) -> None:
    """Whatever a power cut leaves of files that were never synced: nothing, less, or rubbish in them."""
    chance = random.Random(seed)
    fill(wide, 10)
    wide.flush()
    fill(wide, 10)
    catch_up_now(wide)
    if chance.random() < 0.3:
        wide.log.truncate_to(chance.randrange(20))
    wide.crash(seed)
    if chance.random() < 0.5 and wide.disk.exists(f"{wide.directory}/{0:020d}.index"):
        wide.overwrite(f"{0:020d}.index", chance.randbytes(chance.choice([8, 13, 80])))
    wide.open(recovery_point=wide.log.recovery_checkpoint)
    entries, _ = written(wide)
    assert len(entries) == wide.log.segments.active.offset_index.count
    fill(wide, 5)
    catch_up_now(wide)
    assert len(written(wide)[0]) > len(entries)


def test_a_full_disk_delays_them(wide: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(wide, 10)

    def full(path: str, *, create: bool = False) -> None:
        raise DiskFull(path, "no space left")

    with monkeypatch.context() as while_full:
        while_full.setattr(wide.disk, "open", full)
        catch_up_now(wide)
    assert wide.log.failure is None
    catch_up_now(wide)
    assert written(wide)[0]


def test_a_broken_disk_takes_the_log_out_of_use(wide: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(wide, 10)

    def broken(path: str, *, create: bool = False) -> None:
        raise DiskFailure(path, "input/output error")

    monkeypatch.setattr(wide.disk, "open", broken)
    catch_up_now(wide)
    assert wide.log.failure is not None


@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX, LOG])
def test_no_segment_is_left_behind_that_there_was_no_room_for(
    small: Machine, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """An empty file of batches in the midst of another segment's offsets would end the log there after a crash."""
    fill(small, 3)
    opened = small.disk.open

    def full(path: str, *, create: bool = False) -> object:
        if path.endswith(suffix) and not small.disk.exists(path):
            raise DiskFull(path, "no space left")
        return opened(path, create=create)

    with monkeypatch.context() as while_full:
        while_full.setattr(small.disk, "open", full)
        with pytest.raises(DiskFull):
            small.log.roll(small.clock.now_ms)
    fill(small, 1)
    values = small.values()
    small.reopen()
    assert small.values() == values
    assert len(small.names(LOG)) == len(small.names(INDEX)) == len(small.names(TIME_INDEX)) == len(small.log.segments)
