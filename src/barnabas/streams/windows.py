"""Windows: tumbling, hopping, sliding and session windows, and the keys of windowed results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError

__all__ = [
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "Windowed",
    "Windows",
    "hopping",
    "session",
    "sliding",
    "tumbling",
]

K = TypeVar("K")


class Windowed(NamedTuple, Generic[K]):
    """The key of a windowed result: the key of the records and the window's start and end in milliseconds.

    The end of a tumbling or hopping window is exclusive; the end of a sliding or session window is inclusive.
    """

    key: K
    start: int
    end: int


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size that start every ``advance_ms``."""

    size_ms: int
    advance_ms: int
    grace_ms: int


@dataclass(frozen=True)
class SlidingWindows:
    """Windows around records whose timestamps differ by at most ``difference_ms``."""

    difference_ms: int
    grace_ms: int


@dataclass(frozen=True)
class SessionWindows:
    """Windows of activity that end after ``gap_ms`` without a record of the key."""

    gap_ms: int
    grace_ms: int


Windows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows


def tumbling(size: Duration, *, grace: Duration = "0ms") -> TimeWindows:
    """Define windows of a fixed size that do not overlap.

    size: length of a window.
    grace: how long after the end of a window late records are accepted.
    """
    size_ms = _positive(size, "the size of a tumbling window")
    return TimeWindows(size_ms, size_ms, milliseconds(grace))


def hopping(size: Duration, advance: Duration, *, grace: Duration = "0ms") -> TimeWindows:
    """Define windows of a fixed size that overlap.

    size: length of a window.
    advance: interval between the starts of two windows; at most the size.
    grace: how long after the end of a window late records are accepted.
    """
    size_ms = _positive(size, "the size of a hopping window")
    advance_ms = _positive(advance, "the advance of a hopping window")
    if advance_ms > size_ms:
        raise TopologyError(f"the advance {advance} of a hopping window is larger than its size {size}")
    return TimeWindows(size_ms, advance_ms, milliseconds(grace))


def sliding(difference: Duration, *, grace: Duration = "0ms") -> SlidingWindows:
    """Define windows that hold every set of records at most ``difference`` apart.

    difference: maximum difference of the timestamps of two records in one window.
    grace: how long after the end of a window late records are accepted.
    """
    return SlidingWindows(milliseconds(difference), milliseconds(grace))


def session(gap: Duration, *, grace: Duration = "0ms") -> SessionWindows:
    """Define windows of activity, separated by gaps.

    gap: time without a record of the key after which its session ends.
    grace: how long after the end of a session late records are accepted.
    """
    return SessionWindows(_positive(gap, "the gap of a session window"), milliseconds(grace))


def _positive(duration: Duration, subject: str) -> int:
    value = milliseconds(duration)
    if value <= 0:
        raise TopologyError(f"{subject} must be larger than zero, not {duration}")
    return value
