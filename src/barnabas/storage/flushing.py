"""Making a log durable: one fsync shared by everybody who asks meanwhile, and the recovery point it gives.

A caller that comes while a sync runs waits for the next one, since its records may have been written too late for this
one. What fails is never tried again: the log's directory goes offline. Only the log uses this.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.storage.batch_file import SUFFIXES
from barnabas.storage.checkpoints import LEADER_EPOCH_FILE
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFailure, replace

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog


class Flushing:
    __slots__ = ("_ceiling", "_log", "_running", "is_directory_dirty", "is_dirty", "last_flush_ms", "recovery_point")

    def __init__(self, log: PartitionLog, recovery_point: int, *, now_ms: int) -> None:
        self._log = log
        self._running: asyncio.Future[None] | None = None
        self._ceiling = recovery_point
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        self.is_dirty = False  # something besides appended batches has changed: a cut, a new file
        self.is_directory_dirty = False

    def truncated(self, offset: int) -> None:
        """The log was cut: what a running sync covers above the cut is not what lies there afterwards."""
        self._ceiling = min(self._ceiling, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.is_dirty = True

    def files_changed(self) -> None:
        self.is_dirty = self.is_directory_dirty = True

    @property
    def is_needed(self) -> bool:
        return self.recovery_point < self._log.end_offset or self.is_dirty or self._log.epochs.is_dirty

    async def flush(self, *, with_active: bool = True, is_closing: bool = False) -> None:
        """Return when all that was appended before the call is on the device."""
        target = self._log.end_offset if with_active else self._log.segments.active.base_offset
        if is_closing and self.is_needed:
            # The time index gets its last entry, and the next start will trust every file.
            self.is_dirty = True
        while self._log.failure is None and (self.recovery_point < min(target, self._log.end_offset) or self.is_dirty):
            if self._running is not None:
                await asyncio.shield(self._running)
                continue
            self._running = asyncio.get_running_loop().create_future()
            try:
                await self._sync(with_active=with_active, is_closing=is_closing)
            except DiskFailure as error:
                self._log.fail(error, is_final=True)
            finally:
                running, self._running = self._running, None
                running.set_result(None)
        if self._log.failure is not None:
            raise self._log.failure

    async def _sync(self, *, with_active: bool, is_closing: bool) -> None:
        log, disk = self._log, self._log.disk
        active = log.segments.active
        target = log.end_offset if with_active else active.base_offset
        self._ceiling = target
        is_directory_dirty, self.is_directory_dirty, self.is_dirty = self.is_directory_dirty, False, False
        segments = log.segments.from_offset(self.recovery_point)
        # The active segment's indexes need no sync: recovery makes them anew, because it starts at or below it.
        for segment in segments:
            if segment is not active or is_closing:
                segment.write_indexes(is_closing=True)
                await self._sync_closed(segment)
            elif with_active:
                segment.write_indexes()
                await segment.opened().sync()
        if log.epochs.is_dirty:
            log.epochs.is_dirty = False
            await replace(disk, f"{log.directory}/{LEADER_EPOCH_FILE}", log.epochs.encode())
        while log.snapshots.unsynced:
            await self._sync_file(log.snapshots.unsynced.pop())
        if is_directory_dirty:
            await disk.sync_directory(log.directory)
        self.recovery_point = max(self.recovery_point, min(target, self._ceiling))
        self.last_flush_ms = log.clock.wall_ms()

    async def _sync_closed(self, segment: Segment) -> None:
        for suffix in SUFFIXES:
            await self._sync_file(segment.path(suffix))

    async def _sync_file(self, path: str) -> None:
        """Sync a file that nobody appends to; it may have been dropped meanwhile."""
        if not self._log.disk.exists(path):
            return
        file = self._log.disk.open(path)
        try:
            await file.sync()
        finally:
            file.close()
