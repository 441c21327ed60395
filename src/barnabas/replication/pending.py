"""Requests that wait for a partition: acknowledgements for the high watermark, fetches for something to read.

A waiter is told once and forgets itself; a waiter whose client has gone is dropped by cancelling it. Nothing here
decides when the high watermark moves: :mod:`barnabas.replication.partition` does, and wakes the waiters.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

ACKNOWLEDGEMENTS_WAITING_MAX: Final = 100_000  # per partition; beyond it producers are told to come back


class Acknowledgements:
    """Callbacks that fire when the high watermark reaches their offset, or when the partition gives up on them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, Callable[[bool], None]]] = []  # a heap: the lowest offset is first
        self._count = 0

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= ACKNOWLEDGEMENTS_WAITING_MAX

    def add(self, required_offset: int, callback: Callable[[bool], None]) -> None:
        """``callback(True)`` once every in-sync replica has all below ``required_offset``; False if it never will."""
        self._count += 1
        heapq.heappush(self.waiting, (required_offset, self._count, callback))

    def reached(self, high_watermark: int) -> None:
        while self.waiting and self.waiting[0][0] <= high_watermark:
            heapq.heappop(self.waiting)[2](True)

    def give_up(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, _, callback in sorted(waiting):
            callback(False)


class Readers:
    """Long polls that want to know when there is more to read, or when reading stops making sense here."""

    def __init__(self) -> None:
        self.waiting: dict[Callable[[], None], None] = {}  # a dict keeps the order in which they came

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, callback: Callable[[], None]) -> None:
        self.waiting[callback] = None

    def discard(self, callback: Callable[[], None]) -> None:
        self.waiting.pop(callback, None)

    def wake(self) -> None:
        if self.waiting:
            for callback in tuple(self.waiting):
                callback()
