"""Which segments may go, by age, by size or because the log starts above them. Pure; the log removes them.

Nothing at or above the high watermark goes, and a topic without ``delete`` among its policies only loses what lies
wholly below the start of its log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.storage.segment import Segment
from barnabas.storage.settings import TopicSettings


class Bounds(NamedTuple):
    """What the log knows of itself when retention looks at it."""

    log_start_offset: int
    high_watermark: int
    end_offset: int


def expired_count(segments: Sequence[Segment], settings: TopicSettings, bounds: Bounds, *, now_ms: int) -> int:
    """How many segments, from the oldest on, may go. All of them means: the active one, too."""
    ends = [segment.base_offset for segment in segments[1:]]
    gone = _while(
        segments,
        0,
        [*ends, bounds.end_offset],
        bounds,
        lambda index: index < len(ends) and _is_below(ends[index], bounds),
    )
    if not settings.is_deleted:
        return gone
    if settings.retention_bytes >= 0:
        excess = sum(segment.size_bytes for segment in segments[gone:]) - settings.retention_bytes

        def is_too_much(index: int) -> bool:
            nonlocal excess
            excess -= segments[index].size_bytes
            return excess >= 0

        gone = _while(segments, gone, [*ends, bounds.end_offset], bounds, is_too_much)
    if settings.retention_ms >= 0:
        oldest_ms = now_ms - settings.retention_ms
        gone = _while(
            segments,
            gone,
            [*ends, bounds.end_offset],
            bounds,
            lambda index: segments[index].largest_timestamp() < oldest_ms,
        )
    return gone


def _is_below(segment_end: int, bounds: Bounds) -> bool:
    return segment_end <= bounds.log_start_offset


def _while(
    segments: Sequence[Segment], start: int, ends: Sequence[int], bounds: Bounds, is_expired: Callable[[int], bool]
) -> int:
    """Go on from a segment while they are expired and below the high watermark; an empty last one stays."""
    index = start
    while index < len(segments):
        is_empty_last = index == len(segments) - 1 and segments[index].size_bytes == 0
        if is_empty_last or bounds.high_watermark < ends[index] or not is_expired(index):
            break
        index += 1
    return index
