"""The two indexes: what they find, what they forget, and that their bytes are Kafka's."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.index import CorruptIndex, OffsetIndex, TimeIndex

BYTES_MAX = 1 << 20


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex(BYTES_MAX)
    for entry in entries:
        index.append(*entry)
    return index


def test_the_bytes_are_big_endian_pairs() -> None:
    assert offset_index((5, 100), (9, 4300)).unwritten() == struct.pack(">iiii", 5, 100, 9, 4300)
    index = TimeIndex(BYTES_MAX)
    index.append(1_700_000_000_000, 7)
    assert index.unwritten() == struct.pack(">qi", 1_700_000_000_000, 7)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(0, 2000))
def test_floor_finds_the_last_entry_not_above(steps: list[int], wanted: int) -> None:
    entries = [(sum(steps[: count + 1]), 100 * (count + 1)) for count in range(len(steps))]
    index = offset_index(*entries)
    below = [entry for entry in entries if entry[0] <= wanted]
    assert index.floor(wanted) == (below[-1] if below else (0, 0))
    read = OffsetIndex.decode(index.unwritten(), BYTES_MAX, log_size_bytes=1 << 30)
    assert read.floor(wanted) == index.floor(wanted)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5)), max_size=40), st.integers(-5, 2000))
def test_the_time_index_finds_the_last_entry_not_younger(steps: list[tuple[int, int]], wanted: int) -> None:
    index, entries, timestamp, offset = TimeIndex(BYTES_MAX), [(-1, 0)], 0, 0
    for time_step, offset_step in steps:
        timestamp, offset = timestamp + time_step, offset + offset_step
        index.append(timestamp, offset)
        entries.append((timestamp, offset))
    assert index.floor(wanted) == max((entry for entry in entries if entry[0] <= wanted), default=(-1, 0))[1]
    assert TimeIndex.decode(index.unwritten(), BYTES_MAX).floor(wanted) == index.floor(wanted)


def test_an_entry_that_is_not_younger_is_left_out_of_the_time_index() -> None:
    index = TimeIndex(BYTES_MAX)
    index.append(100, 1)
    index.append(100, 2)
    index.append(90, 3)
    assert index.count == 1
    assert (index.last_timestamp, index.last_offset) == (100, 1)


def test_truncation_drops_entries_at_and_above_the_offset() -> None:
    index = offset_index((5, 100), (9, 200), (12, 300))
    index.mark_written()
    index.truncate(9)
    assert list(index.offsets) == [5]
    assert index.written_count == 1
    times = TimeIndex(BYTES_MAX)
    for entry in ((10, 5), (20, 9), (30, 12)):
        times.append(*entry)
    times.truncate(9)
    assert (times.count, times.last_timestamp, times.last_offset) == (1, 10, 5)


def test_only_what_the_file_lacks_is_written() -> None:
    index = offset_index((5, 100))
    index.mark_written()
    assert index.unwritten() == b""
    index.append(9, 200)
    assert index.unwritten() == struct.pack(">ii", 9, 200)


def test_above_position_is_an_offset_beyond_it() -> None:
    index = offset_index((5, 100), (9, 200))
    assert index.above_position(100) == 5
    assert index.above_position(101) == 9
    assert index.above_position(201) is None


def test_the_time_index_keeps_a_place_for_its_last_entry() -> None:
    index = TimeIndex(36)
    index.append(1, 1)
    assert not index.is_full
    index.append(2, 2)
    assert index.is_full


@pytest.mark.parametrize("data", [b"\0" * 7, struct.pack(">ii", 9, 100) + struct.pack(">ii", 5, 10_000)])
def test_an_offset_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndex.decode(data, BYTES_MAX, log_size_bytes=500)


@pytest.mark.parametrize("data", [b"\0" * 11, struct.pack(">qiqi", 100, 1, 50, 2), struct.pack(">qi", 5, -3)])
def test_a_time_index_that_cannot_be_right_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        TimeIndex.decode(data, BYTES_MAX)
