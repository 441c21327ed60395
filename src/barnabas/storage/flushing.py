"""Making a log durable: one fsync shared by everybody who asks meanwhile, and the recovery point it gives.

A caller that comes while a sync runs waits for the next one, since its records may have been written too late for this
one. What fails is never tried again: the log's directory goes offline. Only the log uses this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from barnabas.storage.batch_file import SUFFIXES
from barnabas.storage.checkpoints import LEADER_EPOCH_FILE
from barnabas.storage.identity import PARTITION_METADATA_FILE
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFailure, DiskFull, File, FileClosed, PathGone

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog

TEMPORARY: Final = ".tmp"
UNSYNCED: Final = ".new"


class Flushing:
    __slots__ = (
        "_ceiling",
        "_is_closing",
        "_log",
        "_running",
        "changed_directories",
        "is_blank",
        "is_dirty",
        "last_flush_ms",
        "recovery_point",
        "rolled",
        "successor",
    )

    def __init__(self, log: PartitionLog, recovery_point: int, *, now_ms: int) -> None:
        self._log = log
        self._running: asyncio.Future[None] | None = None
        self._ceiling = recovery_point
        self._is_closing = False
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        self.is_blank = (
            False  # made in this life, and nothing was ever cut off: without records there is nothing to lose
        )
        self.is_dirty = False  # something besides appended batches has changed: a cut, a new file
        self.changed_directories: set[str] = set()
        # Closed segments whose files are not all on the device; after a crash that may be any of those it had open.
        self.rolled: list[Segment] = log.segments.from_offset(recovery_point)[:-1]
        self.successor: Flushing | None = None  # of a log that has moved to another directory

    def truncated(self, offset: int) -> None:
        """The log was cut: what a running sync covers above the cut is not what lies there afterwards."""
        self._ceiling = min(self._ceiling, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.is_dirty = True
        self.is_blank = False

    def dropped(self, segments: list[Segment]) -> None:
        """These segments are gone; others may have their names soon."""
        gone = {id(segment) for segment in segments}
        self.rolled = [segment for segment in self.rolled if id(segment) not in gone]

    def files_changed(self, directory: str | None = None) -> None:
        """Names in the log's directory, or in the one above it, are not what they were."""
        self.changed_directories.add(directory or self._log.directory)
        self.is_dirty = True

    @property
    def checkpoint(self) -> int:
        """The recovery point to write down: recovery must begin in the first segment whose indexes are not synced.

        Once the active segment has rolled, an offset at its very end would name the next segment and spare this one.
        """
        if self._log.is_closed:
            return self.recovery_point
        base_offset = (self.rolled[0] if self.rolled else self._log.segments.active).base_offset
        return max(base_offset, self.recovery_point - 1) if self.recovery_point > base_offset else self.recovery_point

    async def close(self) -> None:
        """The last flush: the next start trusts every file of a log that was closed, if anything was touched."""
        log = self._log
        self._is_closing = True
        if self.is_blank and log.end_offset == 0:
            return  # should its files vanish, it is made again, as empty as it was
        if self.recovery_point < log.end_offset or log.epochs.is_dirty or log.segments.active.is_touched:
            self.is_dirty = True
        await self.flush()

    async def flush(self, *, with_active: bool = True) -> None:
        """Return when all that was appended before the call is on the device."""
        log = self._log
        target = log.end_offset if with_active else log.segments.active.base_offset
        while not log.is_over and self._is_behind(target, with_active=with_active):
            if self._running is not None:
                await asyncio.shield(self._running)
                continue
            self._running = asyncio.get_running_loop().create_future()
            try:
                await self._sync(with_active=with_active)
            except DiskFull:
                raise  # nothing is lost: whoever asks again, when there is room, will have it
            except PathGone as error:
                if not log.is_over:  # a log that was deleted during the sync has nothing left to make durable
                    log.fail(error)
            except DiskFailure as error:
                log.fail(error, is_final=True)
            except FileClosed:
                if not log.is_over:
                    raise
            finally:
                running, self._running = self._running, None
                running.set_result(None)
        if log.failure is not None:
            raise log.failure
        if self.successor is not None:
            await self.successor.flush(with_active=with_active)

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Until this is left no sync begins, and none is under way: whoever asks for one waits."""
        while self._running is not None:
            await asyncio.shield(self._running)
        self._running = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            running, self._running = self._running, None
            running.set_result(None)

    def _is_behind(self, target: int, *, with_active: bool) -> bool:
        if not with_active:
            # The log may have been cut back meanwhile, into a segment that has been closed before.
            target = min(target, self._log.segments.active.base_offset)
        if self.rolled and self.rolled[0].base_offset < target:
            return True
        return self.recovery_point < min(target, self._log.end_offset) or (self.is_dirty and with_active)

    async def _sync(self, *, with_active: bool) -> None:
        target = self._log.end_offset if with_active else self._log.segments.active.base_offset
        self._ceiling = target
        was_dirty, self.is_dirty = self.is_dirty, self.is_dirty and not with_active
        is_done = False
        directories: set[str] = set()
        try:
            await self._sync_segments(with_active=with_active)
            await self._sync_state()
            # Last, so that every name the files above got is covered.
            directories, self.changed_directories = self.changed_directories, set()
            for directory in sorted(directories):
                await self._log.disk.sync_directory(directory)
            is_done = True
        finally:
            if not is_done:
                self.changed_directories |= directories
                self.is_dirty |= was_dirty
        self.recovery_point = max(self.recovery_point, min(target, self._ceiling))
        self.last_flush_ms = self._log.clock.wall_ms()

    async def _sync_segments(self, *, with_active: bool) -> None:
        active = self._log.segments.active
        while self.rolled:
            segment = self.rolled[0]
            if segment is self._log.segments.active:
                del self.rolled[0]  # the log was cut back into it, and it is written to again
                continue
            if segment is active:
                break  # it has been closed while we waited: the next turn is for it
            cuts = self._log.cut_count
            await self._sync_closed(segment)
            # One that was cut, written to and closed again meanwhile has its turn once more.
            if self.rolled and self.rolled[0] is segment and self._log.cut_count == cuts:
                del self.rolled[0]
        if self._is_closing:
            await self._sync_closed(active)
        elif with_active and self._log.segments.holds(active):
            # Retention may have dropped it while we waited. Its indexes need no sync: recovery makes them anew, because
            # it starts at or below this segment.
            if active.has_unwritten_entries:
                with suppress(DiskFull):
                    active.write_indexes()
            await active.opened().sync()

    async def _sync_closed(self, segment: Segment) -> None:
        segment.write_indexes(is_closing=True)
        for suffix in SUFFIXES:
            await self._sync_file(segment.path(suffix))

    async def sync_identity(self) -> None:
        """Whose log this is gets to the device, and the names by which it is found; the records may wait."""
        log = self._log
        if log.is_over:
            return
        try:
            await self._sync_file(f"{log.directory}/{PARTITION_METADATA_FILE}")
            for directory in (log.directory, log.directory.rpartition("/")[0]):
                await log.disk.sync_directory(directory)
        except (FileClosed, PathGone):
            if not log.is_over:
                raise

    async def _sync_state(self) -> None:
        """Epochs and producers: what is known of them must be durable before recovery may skip their batches."""
        log = self._log
        while log.epochs.is_dirty:
            log.epochs.is_dirty = False
            is_done = False
            try:
                await self._write_epochs()
                is_done = True
            finally:
                log.epochs.is_dirty |= not is_done
        while log.snapshots.unsynced:
            await self._sync_file(log.snapshots.unsynced[-1])
            log.snapshots.unsynced.pop()

    def write_epochs(self) -> None:
        """Bring the file up to date, before a batch is appended that rests on it; the next flush syncs it."""
        path = f"{self._log.directory}/{LEADER_EPOCH_FILE}"
        self._new_epochs(path + UNSYNCED).close()
        self._log.disk.rename(path + UNSYNCED, path)
        self._log.epochs.is_unwritten = False
        self.files_changed()

    async def _write_epochs(self) -> None:
        """As ``replace`` does it, but the directory is synced together with what else has changed in it."""
        path = f"{self._log.directory}/{LEADER_EPOCH_FILE}"
        file = self._new_epochs(path + TEMPORARY)
        try:
            await file.sync()
        finally:
            file.close()
        if self._log.epochs.is_dirty:
            return  # an epoch has begun meanwhile: an older file must not take the place of a newer one
        self._log.disk.rename(path + TEMPORARY, path)
        self._log.epochs.is_unwritten = False
        self.changed_directories.add(self._log.directory)

    def _new_epochs(self, path: str) -> File:
        self._log.disk.remove(path)
        file = self._log.disk.open(path, create=True)
        try:
            file.append(self._log.epochs.encode())
        except DiskFailure:
            file.close()
            raise
        return file

    async def _sync_file(self, path: str) -> None:
        """Sync a file that nobody appends to; it may have been dropped meanwhile."""
        if not self._log.disk.exists(path):
            return
        file = self._log.disk.open(path)
        try:
            await file.sync()
        finally:
            file.close()
