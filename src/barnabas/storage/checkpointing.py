"""Writes the checkpoint files of a store's log directories, also when the disk is full.

:class:`LogDirectory` knows the files of one directory. The store writes all of them periodically, and those of one
directory at once after a change that the next start must know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.checkpoints import CLEANER_FILE, RECOVERY_POINT_FILE
from barnabas.storage.directory import LogDirectory
from barnabas.world.disk import DiskFailure, DiskFull
from barnabas.world.tasks import Tasks

if TYPE_CHECKING:
    from barnabas.storage.store import LogStore


class Checkpointing:
    def __init__(self, store: LogStore, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks

    def write_soon(self, directory: LogDirectory) -> None:
        self._tasks.start(self.write(directory), f"checkpoint:{directory.path}")

    async def write(self, directory: LogDirectory) -> None:
        await self.write_cleaned(directory)
        try:
            await directory.checkpoint(self._store.logs_in(directory))
        except DiskFull as error:
            # The old files only cause more recovery work, unless a log was truncated below its recovery point there.
            directory.room.full(error)
            await self._drop_untrue(directory)
        except DiskFailure as error:
            self._store.take_offline(directory.path, error)

    async def _drop_untrue(self, directory: LogDirectory) -> None:
        """Remove the recovery points if one is too high: then every log is recovered from its start, which is safe."""
        try:
            written = directory.read_checkpoint(RECOVERY_POINT_FILE)
            logs = self._store.logs_in(directory)
            if any(written.get(log.partition, 0) > log.recovery_checkpoint for log in logs):
                await directory.remove_checkpoint(RECOVERY_POINT_FILE)
        except DiskFailure as error:
            self._store.take_offline(directory.path, error)

    async def write_cleaned(self, directory: LogDirectory) -> None:
        logs = self._store.logs_in(directory)
        try:
            offsets = {log.partition: log.cleaned_offset for log in logs if log.cleaned_offset is not None}
            await directory.write_checkpoint(CLEANER_FILE, offsets)
        except DiskFull as error:
            # The old file has lower offsets: the cleaner only repeats some work.
            directory.room.full(error)
        except DiskFailure as error:
            self._store.take_offline(directory.path, error)
