"""How often something happened: since the start, and per second of late.

Rates are as Kafka's meters give them: of the last 30 to 60 seconds. Whoever counts has the meter, whoever shows it
reads it; nothing runs in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

WINDOW_NS: Final = 30 * 1_000_000_000


class Meter:
    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self.count = 0
        self._window = now_ns() // WINDOW_NS
        self._count_before_window = 0
        self._count_before_last = 0  # when the window before this one began

    def mark(self, times: int = 1) -> None:
        self._turn()
        self.count += times

    @property
    def rate(self) -> float:
        """Per second, over this window and the one before it."""
        self._turn()
        elapsed_ns = WINDOW_NS + self._now_ns() % WINDOW_NS
        return (self.count - self._count_before_last) * 1e9 / elapsed_ns

    def _turn(self) -> None:
        window = self._now_ns() // WINDOW_NS
        if window != self._window:
            is_next = window == self._window + 1
            self._count_before_last = self._count_before_window if is_next else self.count
            self._count_before_window = self.count
            self._window = window
