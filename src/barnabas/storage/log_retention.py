"""Retention over all logs of a store: at an interval, and at once in a directory whose disk is almost full.

``retention`` decides which segments of a log expire. A log whose retention fails is noted as a fault; all other logs
are retained as usual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from barnabas.storage.directory import LogDirectory
from barnabas.storage.doomed import Doomed
from barnabas.storage.faults import Faults
from barnabas.storage.log import PartitionLog
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure, PathGone
from barnabas.world.tasks import Tasks


class LogRetention:
    def __init__(
        self,
        clock: Clock,
        doomed: Doomed,
        faults: Faults,
        tasks: Tasks,
        *,
        logs_in: Callable[[LogDirectory], Sequence[PartitionLog]],
        take_offline: Callable[[str, DiskFailure], None],
    ) -> None:
        self._clock = clock
        self._doomed = doomed
        self._faults = faults
        self._tasks = tasks
        self._logs_in = logs_in
        self._take_offline = take_offline

    async def retain(self, logs: Sequence[PartitionLog]) -> int:
        """Drop the expired segments of these logs; returns how many."""
        count = 0
        now_ms = self._clock.wall_ms()
        for log in logs:
            if log.is_over:
                continue
            with self._faults.contained(log, "retention"):
                # A process can go on writing to files whose directory was removed by hand.
                if not log.disk.exists(log.directory):
                    raise PathGone(log.directory)
                count += log.retain(now_ms)
            await asyncio.sleep(0)
        return count

    def make_room(self, directory: LogDirectory) -> None:
        """Remove deleted files of a directory without their delay, and the segments that retention lets go."""
        self._doomed.hurry(directory.path)
        if directory.is_making_room:
            return
        directory.is_making_room = True

        async def work() -> None:
            try:
                await self.retain(self._logs_in(directory))
                self._doomed.hurry(directory.path)
                await self._doomed.done()
                directory.room.look()
            except DiskFailure as error:
                self._take_offline(directory.path, error)
            finally:
                directory.is_making_room = False

        self._tasks.start(work(), f"make-room:{directory.path}")
