"""Punctuators of a task: functions that are called at intervals of stream time or of wall-clock time.

Their next times are part of the state. A punctuator is known by its node and its number in that node, so it must be
scheduled in ``init()``, which runs the same way whenever a task is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.streams.errors import StreamsError
from barnabas.streams.processor import Punctuator

if TYPE_CHECKING:
    from barnabas.streams.runtime.task import Task

__all__ = ["Punctuators"]

NEVER: Final = 1 << 62
_UNSET: Final = -1  # the first time is not decided yet


class _Schedule(Punctuator):
    """One punctuator. ``cell`` holds its next time, which is ``NEVER`` after it was cancelled."""

    def __init__(self, cell: list[int], interval_ms: int, call: Callable[[int], None], owner: Punctuators) -> None:
        self.cell = cell
        self.interval_ms = interval_ms
        self.call = call
        self._owner = owner

    def cancel(self) -> None:
        self.cell[0] = NEVER
        self._owner.refresh()

    def advance(self, now: int) -> None:
        """Set the next time: a multiple of the interval after ``now``, without calls for the intervals that passed."""
        due = self.cell[0]
        following = due + self.interval_ms
        if following <= now:
            following = due + ((now - due) // self.interval_ms + 1) * self.interval_ms
        self.cell[0] = following


class Punctuators:
    """The punctuators of a task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._stream: list[_Schedule] = []
        self._wall: list[_Schedule] = []
        self._numbers: dict[str, int] = {}
        self.next_stream_time = NEVER

    def add(self, node: str, interval_ms: int, call: Callable[[int], None], by: str) -> Punctuator:
        """Schedule a function; only while the processors of the task are initialized."""
        if interval_ms < 1:
            raise StreamsError(f"{node}: the interval of a punctuator must be at least 1 ms")
        if by not in ("stream_time", "wall_clock"):
            raise StreamsError(f"{node}: schedule(by={by!r}) is not known; use 'stream_time' or 'wall_clock'")
        number = self._numbers[node] = self._numbers.get(node, -1) + 1
        cell = self._task.cell(f"punctuator:{node}:{number}", _UNSET)
        schedule = _Schedule(cell, interval_ms, call, self)
        if by == "stream_time":
            if cell[0] == _UNSET:
                cell[0] = 0  # due with the first record
            self._stream.append(schedule)
        else:
            if cell[0] == _UNSET:
                cell[0] = self._task.time_ms + interval_ms
            self._wall.append(schedule)
        self.refresh()
        return schedule

    def refresh(self) -> None:
        """Find the next time at which a punctuator by stream time is due."""
        self.next_stream_time = min((schedule.cell[0] for schedule in self._stream), default=NEVER)

    @property
    def next_wall_clock_time(self) -> int | None:
        """The next time at which a punctuator by wall-clock time is due; None if there is none."""
        due = min((schedule.cell[0] for schedule in self._wall), default=NEVER)
        return None if due == NEVER else due

    def by_stream_time(self, now: int) -> None:
        """Call the punctuators by stream time that are due."""
        self._call(self._stream, now)
        self.refresh()

    def by_wall_clock(self, now: int) -> None:
        """Call the punctuators by wall-clock time that are due."""
        self._call(self._wall, now)

    def _call(self, schedules: list[_Schedule], now: int) -> None:
        while due := [each for each in schedules if each.cell[0] <= now]:
            first = min(due, key=lambda each: each.cell[0])
            first.call(now)
            if first.cell[0] != NEVER:
                first.advance(now)
