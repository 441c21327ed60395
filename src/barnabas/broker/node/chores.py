"""Runs work at an interval: checkpoints, retention, flushes.

One kind of work never overlaps itself, and it is scheduled again after any exception. The interval is measured on the
world's clock, so a test that advances time by a week runs the work once, as after a long pause.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.observe.log import logger
from barnabas.world.disk import DiskFailure
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

log = logger("chores")


class Chores:
    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer_of: dict[str, Timer] = {}
        self._tasks = Tasks()
        self._is_stopping = False

    def every(self, interval_ms: int, name: str, work: Callable[[], Awaitable[object]]) -> None:
        """Run ``work`` after every ``interval_ms``, counted from the end of its last run."""

        async def run() -> None:
            try:
                await work()
            except DiskFailure as failure:
                log.error("chore failed", chore=name, reason=failure)
            finally:
                schedule()

        def schedule() -> None:
            if not self._is_stopping:
                self._timer_of[name] = self._timers.after(interval_ms, lambda: self._tasks.start(run(), name))

        schedule()

    async def done(self) -> None:
        """Wait for the work that is running now."""
        await self._tasks.done()

    async def stop(self) -> None:
        """Schedule nothing more and wait for the work that is running now."""
        self._is_stopping = True
        for timer in self._timer_of.values():
            timer.cancel()
        await self._tasks.done()
