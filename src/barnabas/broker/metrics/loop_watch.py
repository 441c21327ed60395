"""Is the loop held up? It makes an appointment with itself every tenth of a second and counts by how much it is late.

How idle it is comes from the work of its thread. The numbers are shown by ``process_metrics``.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.observe.histogram import Histogram
from barnabas.observe.log import logger
from barnabas.world.clock import Clock

log = logger("loop")

INTERVAL_SECONDS: Final = 0.1
WARNING_NS_MIN: Final = 1_000_000_000  # clients notice
STALL_NS_MIN: Final = 50_000_000  # below this a loop is busy; above it, it is held up


class LoopWatch:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lag = Histogram()
        self.stall_count = 0
        self.longest_ns = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last = (0, 0)  # when idleness was last looked at, and how much the thread had worked by then
        self.idle = 1.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = (self._clock.monotonic_ns(), self._clock.thread_ns())
        self._meet()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _meet(self) -> None:
        self._due = self._loop.time() + INTERVAL_SECONDS
        self._timer = self._loop.call_at(self._due, self._met)

    def _met(self) -> None:
        late_ns = max(0, round((self._loop.time() - self._due) * 1e9))
        self.lag.record(late_ns)
        if late_ns >= STALL_NS_MIN:
            self.stall_count += 1
            self.longest_ns = max(self.longest_ns, late_ns)
            tell = log.warning if late_ns >= WARNING_NS_MIN else log.info
            tell("the loop was held up", milliseconds=late_ns // 1_000_000)
        self._meet()

    def turn(self) -> None:
        """A window is over: quantiles forget the one before, and idleness is that of the window."""
        self.lag.turn()
        now, worked = self._clock.monotonic_ns(), self._clock.thread_ns()
        passed = now - self._last[0]
        if passed > 0:
            self.idle = min(1.0, max(0.0, 1 - (worked - self._last[1]) / passed))
        self._last = (now, worked)
