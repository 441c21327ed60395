"""What a store writes down about its logs, and what it does when there is no room for that.

The files of one directory are :class:`LogDirectory`'s business. The store writes all of them now and then, and those of
one directory when something in it must be known at the next start.
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
            # The old ones ask for more work after a crash, unless a log has been cut below what they say of it.
            directory.room.full(error)
            await self._drop_untrue(directory)
        except DiskFailure as error:
            self._store.take_offline(directory.path, error)

    async def _drop_untrue(self, directory: LogDirectory) -> None:
        """Without a file of recovery points every log is read from its start: long, and never wrong."""
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
            # The old one says that less is clean than is: more work later, and nothing else.
            directory.room.full(error)
        except DiskFailure as error:
            self._store.take_offline(directory.path, error)
