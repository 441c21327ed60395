"""Which log is cleaned, how far, and what becomes one segment."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.model.settings import INT64_MAX
from barnabas.storage.compaction import (
    Bound,
    Cleanable,
    LogFacts,
    SegmentSize,
    cleanable,
    dirtiest,
    groups,
    is_due,
)
from barnabas.storage.settings import TopicSettings

NOW_MS = 10**12


class FakeSegment:
    """The few facts of a segment that are asked for."""

    def __init__(self, base_offset: int, size_bytes: int = 100, *, age_ms: int = 10**6) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self._time = NOW_MS - age_ms

    def largest_timestamp(self) -> int:
        return self._time

    def first_timestamp(self) -> int:
        return self._time


def look(
    *segments: Any, end: int = 1000, cleaned: int | None = None, stable: int | None = None, **more: Any
) -> Cleanable:
    start = more.pop("log_start", segments[0].base_offset)
    settings = TopicSettings(cleanup_policy=("compact",), **more)
    facts = LogFacts(segments, start, end, end if stable is None else stable, cleaned, settings)
    return cleanable(facts, now_ms=NOW_MS)


FOUR = [FakeSegment(base) for base in (0, 100, 200, 300)]


def test_a_log_that_was_never_cleaned_is_dirty_up_to_its_active_segment() -> None:
    found = look(*FOUR)
    assert (found.first_dirty_offset, found.end_offset) == (0, 300)
    assert (found.clean_bytes, found.dirty_bytes, found.ratio) == (0, 300, 1.0)
    assert found.bound is Bound.ACTIVE


def test_what_was_cleaned_is_clean() -> None:
    found = look(*FOUR, cleaned=200)
    assert (found.clean_bytes, found.dirty_bytes) == (200, 100)
    assert found.ratio == pytest.approx(1 / 3)


def test_a_segment_that_was_cleaned_in_part_counts_as_both() -> None:
    found = look(*FOUR, cleaned=150)
    assert (found.first_dirty_offset, found.clean_bytes, found.dirty_bytes) == (150, 200, 200)


@pytest.mark.parametrize(("cleaned", "log_start"), [(50, 120), (2000, 0)])
def test_a_point_outside_of_the_log_makes_all_of_it_dirty(cleaned: int, log_start: int) -> None:
    assert look(*FOUR, cleaned=cleaned, log_start=log_start).first_dirty_offset == log_start


@pytest.mark.parametrize(("stable", "end"), [(250, 200), (200, 200), (199, 100), (0, 0), (300, 300), (350, 300)])
def test_nothing_at_or_above_the_last_stable_offset_is_touched(stable: int, end: int) -> None:
    found = look(*FOUR, stable=stable)
    assert found.end_offset == end
    assert found.bound is (Bound.UNSTABLE if stable < 300 else Bound.ACTIVE)


def test_what_is_younger_than_the_lag_waits() -> None:
    segments = [
        FakeSegment(0, age_ms=9000),
        FakeSegment(100, age_ms=3000),
        FakeSegment(200, age_ms=9000),
        FakeSegment(300),
    ]
    found = look(*segments, min_compaction_lag_ms=5000)
    assert (found.end_offset, found.bound) == (100, Bound.YOUNG)
    assert look(*segments, min_compaction_lag_ms=5000, cleaned=200).end_offset == 300


def test_an_empty_log_is_never_due() -> None:
    found = look(FakeSegment(0, 0), end=0)
    assert not is_due(found, TopicSettings(min_cleanable_dirty_ratio=0.0))
    assert found.ratio == 0.0


def test_enough_must_be_dirty() -> None:
    found = look(*FOUR, cleaned=200)
    assert not is_due(found, TopicSettings())
    assert not is_due(found, TopicSettings(min_cleanable_dirty_ratio=1 / 3))
    assert is_due(found, TopicSettings(min_cleanable_dirty_ratio=0.3))


def test_what_is_older_than_the_largest_lag_is_due_however_little_it_is() -> None:
    segments = [FakeSegment(0, 10**6), FakeSegment(100, 1, age_ms=6000), FakeSegment(200)]
    assert look(*segments, cleaned=100).overdue_ms == 0
    found = look(*segments, cleaned=100, max_compaction_lag_ms=5000)
    assert found.overdue_ms == 1000
    assert is_due(found, TopicSettings())
    assert look(*segments, cleaned=100, max_compaction_lag_ms=INT64_MAX - 1).overdue_ms == 0


def test_an_overdue_log_with_nothing_to_clean_is_not_due() -> None:
    segments = [FakeSegment(0), FakeSegment(100, age_ms=6000), FakeSegment(200)]
    found = look(*segments, cleaned=100, max_compaction_lag_ms=5000, stable=150)
    assert found.overdue_ms > 0
    assert not is_due(found, TopicSettings())


def test_the_dirtiest_of_those_that_are_due_is_next() -> None:
    def log(clean: int, dirty: int) -> Cleanable:
        return Cleanable(0, 1, clean, dirty, Bound.ACTIVE, 0)

    lazy, eager = TopicSettings(min_cleanable_dirty_ratio=0.95), TopicSettings(min_cleanable_dirty_ratio=0.1)
    candidates = [("a", log(10, 90), lazy), ("b", log(80, 20), eager), ("c", log(70, 30), eager)]
    assert dirtiest(candidates) == ("c", log(70, 30))
    assert dirtiest(candidates[:1]) is None


def sizes(*rows: tuple[int, int, int, int]) -> list[SegmentSize]:
    bases = [row[0] for row in rows]
    ends = [*bases[1:], bases[-1] + 100]
    return [SegmentSize(row[0], end, *row[1:]) for row, end in zip(rows, ends, strict=True)]


def grouped(segments: list[SegmentSize], **settings: Any) -> list[list[int]]:
    return [list(group) for group in groups(segments, TopicSettings(**settings))]


def test_neighbours_become_one_as_long_as_they_fit() -> None:
    segments = sizes((0, 40, 8, 12), (100, 60, 8, 12), (200, 50, 8, 12), (300, 500, 8, 12), (400, 1, 8, 12))
    assert grouped(segments, segment_bytes=100) == [[0, 1], [2], [3], [4]]


def test_the_indexes_must_fit_too() -> None:
    segments = sizes((0, 1, 80, 12), (100, 1, 80, 12), (200, 1, 8, 100), (300, 1, 8, 100))
    assert grouped(segments, segment_index_bytes=160) == [[0, 1], [2], [3]]


def test_a_segment_spans_no_more_offsets_than_an_index_can_say() -> None:
    segments = sizes((0, 1, 0, 0), (2**30, 1, 0, 0), (2**31, 1, 0, 0), (2**31 + 5, 0, 0, 0))
    assert grouped(segments) == [[0, 1], [2, 3]]
    assert grouped(sizes((0, 1, 0, 0), (2**32, 0, 0, 0))) == [[0, 1]]
