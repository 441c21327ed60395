"""Work that comes round again: checkpoints, retention. One chore never overlaps itself, and a broken one is logged.

The interval is measured on the world's clock, so a test that advances time by a week sees the chores of that week
done once, as after a long pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.observe.log import logger
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timer, Timers

log = logger("chores")


class Chores:
    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer_of: dict[str, Timer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def every(self, interval_ms: int, name: str, work: Callable[[], Awaitable[object]]) -> None:
        def due() -> None:
            task = asyncio.get_running_loop().create_task(run(), name=f"chore:{name}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        async def run() -> None:
            try:
                await work()
            except DiskFailure as failure:
                log.error("chore failed", chore=name, reason=failure)
            if not self._is_stopping:
                self._timer_of[name] = self._timers.after(interval_ms, due)

        self._timer_of[name] = self._timers.after(interval_ms, due)

    async def done(self) -> None:
        """Wait for the work that is under way now."""
        if self._tasks:
            await asyncio.wait(sorted(self._tasks, key=lambda task: task.get_name()))

    async def stop(self) -> None:
        self._is_stopping = True
        for timer in self._timer_of.values():
            timer.cancel()
        if self._tasks:
            await asyncio.gather(*sorted(self._tasks, key=lambda task: task.get_name()), return_exceptions=True)
