"""Timers on the world's clock, behind a single timer of the event loop.

Sessions, retention, timeouts and delayed deletions all use it, so a test that moves the clock moves all of them. Timers
with the same deadline fire in the order in which they were set, and an exception in a callback goes to the loop's
exception handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from barnabas.world.clock import Clock

SLEEP_MS_MAX: Final = 24 * 60 * 60 * 1000  # limit of one timer of the loop; a longer one is set again after a day
DEAD_TIMERS_MIN: Final = 64  # cancelled timers that are kept before a clean-up


class Timer:
    """One deadline. After it has fired, ``cancel`` has no effect."""

    __slots__ = ("_callback", "_deadline_ms", "_timers")

    def __init__(self, timers: Timers, deadline_ms: int, callback: Callable[[], object]) -> None:
        self._timers = timers
        self._deadline_ms = deadline_ms
        self._callback: Callable[[], object] | None = callback

    @property
    def deadline_ms(self) -> int:
        return self._deadline_ms

    @property
    def is_pending(self) -> bool:
        return self._callback is not None

    def cancel(self) -> None:
        if self._callback is not None:
            self._callback = None
            self._timers._note_cancelled()

    def _run(self) -> None:
        # Between falling due and running, another callback of the same turn may have cancelled this one.
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._set_count = 0
        self._dead_count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for_ms = 0
        self._forget_jumps = clock.on_jump(self._on_jump)
        self._is_closed = False

    def at(self, deadline_ms: int, callback: Callable[[], object]) -> Timer:
        """Call back once the clock's monotonic time has reached ``deadline_ms``, never before the next turn."""
        if self._is_closed:
            raise RuntimeError("these timers are closed")
        timer = Timer(self, deadline_ms, callback)
        self._set_count += 1
        heappush(self._heap, (deadline_ms, self._set_count, timer))
        if self._armed is None or deadline_ms < self._armed_for_ms:
            self._arm()
        return timer

    def after(self, delay_ms: int, callback: Callable[[], object]) -> Timer:
        return self.at(self._clock.monotonic_ms() + delay_ms, callback)

    async def sleep(self, delay_ms: int) -> None:
        woken = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.after(delay_ms, wake)
        try:
            await woken
        finally:
            timer.cancel()

    @property
    def count(self) -> int:
        """The number of timers that have not fired and are not cancelled."""
        return sum(timer.is_pending for _, _, timer in self._heap)

    def close(self) -> None:
        """Fire no timer any more. A task that still sleeps here must be cancelled by its owner."""
        self._is_closed = True
        self._forget_jumps()
        self._disarm()
        self._heap.clear()

    def _note_cancelled(self) -> None:
        self._dead_count += 1
        if self._dead_count >= DEAD_TIMERS_MIN and self._dead_count * 2 > len(self._heap):
            self._drop_dead()

    def _drop_dead(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].is_pending]
        heapify(self._heap)
        self._dead_count = 0

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _arm(self) -> None:
        self._disarm()
        if self._heap:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            deadline_ms = self._heap[0][0]
            delay_ms = min(max(0, deadline_ms - self._clock.monotonic_ms()), SLEEP_MS_MAX)
            self._armed = self._loop.call_later(delay_ms / 1000, self._fire)
            self._armed_for_ms = deadline_ms

    def _on_jump(self) -> None:
        if self._heap:
            self._arm()

    def _fire(self) -> None:
        # The loop calls each callback: one that raises is reported by the loop and affects no other.
        assert self._loop is not None
        self._armed = None
        now_ms = self._clock.monotonic_ms()
        heap = self._heap
        while heap and (heap[0][0] <= now_ms or not heap[0][2].is_pending):
            timer = heappop(heap)[2]
            if timer.is_pending:
                self._loop.call_soon(timer._run)
            else:
                self._dead_count = max(0, self._dead_count - 1)
        self._arm()
