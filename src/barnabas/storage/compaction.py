"""Which log is to be cleaned next, how far, and which of its segments become one. Pure; the cleaner does the rest.

A log is clean up to where the last round ended. Above that it is dirty, and the dirty part may be cleaned up to the
first segment that is active, too young, or holds what is not decided yet. What becomes of single batches is
``batch_filter``'s matter.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from barnabas.model.settings import INT64_MAX
from barnabas.storage.index import RELATIVE_OFFSET_MAX
from barnabas.storage.segment import Segment
from barnabas.storage.settings import TopicSettings

NEVER_OVERDUE_MS: Final = 0


class Bound(enum.Enum):
    """Why the part that may be cleaned ends where it ends."""

    ACTIVE = "the active segment is never cleaned"
    UNSTABLE = "a transaction is open there, or not every replica has it yet"
    YOUNG = "it is younger than min.compaction.lag.ms"


class LogFacts(NamedTuple):
    """What a log knows of itself when the cleaner looks at it."""

    segments: Sequence[Segment]  # the last one is active
    log_start_offset: int
    end_offset: int
    last_stable_offset: int
    cleaned_offset: int | None  # where the last round ended
    settings: TopicSettings


class Cleanable(NamedTuple):
    """What of a log is clean, and what could be cleaned now."""

    first_dirty_offset: int
    end_offset: int  # where a segment begins that must not be touched
    clean_bytes: int
    dirty_bytes: int  # of those that may be cleaned
    bound: Bound
    overdue_ms: int  # how long ago max.compaction.lag.ms has passed; 0: it has not

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def first_dirty_offset(log: LogFacts) -> int:
    """Where the last round ended, unless the log has been cut at either end since: then all of it is dirty."""
    if log.cleaned_offset is None or not log.log_start_offset <= log.cleaned_offset <= log.end_offset:
        return log.log_start_offset
    return log.cleaned_offset


def cleanable(log: LogFacts, *, now_ms: int) -> Cleanable:
    first_dirty = first_dirty_offset(log)
    closed = log.segments[:-1]
    dirty = [segment for segment, end in zip(closed, _ends(log), strict=False) if end > first_dirty]
    bound, limit = Bound.ACTIVE, log.segments[-1].base_offset
    if log.last_stable_offset < limit:
        bound, limit = Bound.UNSTABLE, log.last_stable_offset
    if log.settings.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - log.settings.min_compaction_lag_ms
        for segment in dirty:
            if segment.base_offset >= limit:
                break
            if segment.largest_timestamp() > youngest_ms:
                bound, limit = Bound.YOUNG, segment.base_offset
                break
    # A segment is cleaned as a whole or not at all.
    cleaned = [segment for segment, end in zip(closed, _ends(log), strict=False) if end <= limit]
    end_offset = log.segments[len(cleaned)].base_offset
    return Cleanable(
        first_dirty,
        end_offset,
        sum(segment.size_bytes for segment in log.segments if segment.base_offset < first_dirty),
        sum(segment.size_bytes for segment in dirty if segment.base_offset < end_offset),
        bound,
        _overdue_ms(dirty, log.settings, now_ms=now_ms),
    )


def _ends(log: LogFacts) -> Iterable[int]:
    return (segment.base_offset for segment in log.segments[1:])


def _overdue_ms(dirty: Iterable[Segment], settings: TopicSettings, *, now_ms: int) -> int:
    """By how much the oldest dirty segment is older than max.compaction.lag.ms."""
    if settings.max_compaction_lag_ms == INT64_MAX:
        return NEVER_OVERDUE_MS
    times = [segment.first_timestamp() for segment in dirty]
    oldest_ms = min((time for time in times if time > 0), default=now_ms)
    return max(NEVER_OVERDUE_MS, now_ms - settings.max_compaction_lag_ms - oldest_ms)


def is_due(found: Cleanable, settings: TopicSettings) -> bool:
    """Whether enough of a log is dirty, or something has been dirty for too long."""
    if not found.dirty_bytes:
        return False
    return found.overdue_ms > 0 or found.ratio > settings.min_cleanable_dirty_ratio


T = TypeVar("T")


def dirtiest(candidates: Iterable[tuple[T, Cleanable, TopicSettings]]) -> tuple[T, Cleanable] | None:
    """Of the logs that are due, the one with the largest part to clean."""
    due = [(log, found) for log, found, settings in candidates if is_due(found, settings)]
    return max(due, key=lambda pair: pair[1].ratio, default=None)


class SegmentSize(NamedTuple):
    base_offset: int
    end_offset: int  # where the next segment begins
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def groups(segments: Sequence[SegmentSize], settings: TopicSettings) -> list[range]:
    """Which neighbours become one segment, by their indexes: as many as fit into one, whatever of them goes."""
    found = []
    start = 0
    while start < len(segments):
        size = offset_index = time_index = 0
        end = start
        while end < len(segments):
            segment = segments[end]
            size += segment.size_bytes
            offset_index += segment.offset_index_bytes
            time_index += segment.time_index_bytes
            fits = (
                size <= settings.segment_bytes
                and max(offset_index, time_index) <= settings.segment_index_bytes
                and (
                    not segment.size_bytes
                    or segment.end_offset - 1 - segments[start].base_offset <= RELATIVE_OFFSET_MAX
                )
            )
            if not fits and end > start:
                break
            end += 1
        found.append(range(start, end))
        start = end
    return found
