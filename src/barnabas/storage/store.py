"""All logs of this broker, in all its log directories: opens, creates, deletes, retains, checkpoints and closes them.

A log directory has a lock, an identity and checkpoint files. A failure of its disk takes it offline with all its logs;
a fault of one log (``faults``) concerns no other log. Leadership and settings come from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.observe.log import logger
from barnabas.storage.checkpointing import Checkpointing
from barnabas.storage.directory import LogDirectory
from barnabas.storage.doomed import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX, Doomed
from barnabas.storage.faults import Faults
from barnabas.storage.future_logs import FutureLogs, settle_twins
from barnabas.storage.index_files import catch_up
from barnabas.storage.log import PartitionLog
from barnabas.storage.log_retention import LogRetention
from barnabas.storage.open_segments import OpenSegments
from barnabas.storage.progress import OnProgress
from barnabas.storage.settings import TopicSettings
from barnabas.world.disk import DiskFailure, DiskFull, PathGone, PathUnusable
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("store")

CLOSING_LOGS_MAX: Final = 32  # logs closed at the same time: the device merges their syncs
OTHER_FILES_MAX: Final = 128  # open files other than segments
SEGMENTS_SHARE: Final = 2  # one in so many of the open files is for segments, the rest is for connections

OnOffline = Callable[[str, DiskFailure], None]


class LogStore:
    def __init__(self, world: World, timers: Timers, *, defaults: TopicSettings, on_offline: OnOffline | None) -> None:
        self._world = world
        self._timers = timers
        self._defaults = defaults
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._directories: list[LogDirectory] = []
        self.open_segments = OpenSegments(open_max=world.disk.open_files_max // SEGMENTS_SHARE - OTHER_FILES_MAX)
        self._tasks = Tasks()
        self._doomed = Doomed(world, timers, on_failure=self.take_offline)
        self.faults = Faults(world.disk)
        self.retention = LogRetention(
            world.clock, self._doomed, self.faults, self._tasks, logs_in=self.logs_in, take_offline=self.take_offline
        )
        self.futures = FutureLogs(world, self)
        self.checkpoints = Checkpointing(self, self._tasks)
        self._preferred: dict[TopicPartition, str] = {}  # directories requested for logs that do not exist yet
        self._unnamed: dict[TopicPartition, PartitionLog] = {}  # new logs whose partition.metadata is not synced yet
        self.offline: dict[str, DiskFailure] = {}
        self.on_offline: OnOffline = on_offline or (lambda directory, error: None)
        self.on_log_offline: Callable[[TopicPartition], None] = lambda partition: None
        # The broker epoch of the last clean shutdown, −1 if any directory was not shut down cleanly.
        self.previous_broker_epoch = -1

    @classmethod
    async def open(
        cls,
        world: World,
        timers: Timers,
        directories: Sequence[str],
        *,
        node_id: int,
        cluster_id: str,
        defaults: TopicSettings,
        settings_of: Callable[[str], TopicSettings],
        on_offline: OnOffline | None = None,
        on_progress: OnProgress | None = None,
    ) -> LogStore:
        """Open every directory and every log in it; a directory whose disk fails is offline from the start."""
        store = cls(world, timers, defaults=defaults, on_offline=on_offline)
        epochs = []
        try:
            for path in directories:
                try:
                    directory = await LogDirectory.open(world, path, node_id=node_id, cluster_id=cluster_id)
                    directory.room.on_short = partial(store.retention.make_room, directory)
                    store._directories.append(directory)
                    is_clean = directory.was_clean and not directory.unclean
                    epochs.append(directory.clean_broker_epoch if is_clean else -1)
                except DiskFailure as error:
                    store.take_offline(path, error)
            await store.futures.finish(store._directories)
            for directory in list(store._directories):
                try:
                    adopt = partial(store._adopt, home=directory)
                    await directory.load(settings_of, store.open_segments, adopt, store.faults.unopened, on_progress)
                except DiskFailure as error:
                    store.take_offline(directory.path, error)
            store.futures.settle()
        except BaseException:
            store._release()
            raise
        store.previous_broker_epoch = epochs[0] if len(set(epochs)) == 1 else -1
        return store

    # --- the logs -------------------------------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return MappingProxyType(self._logs)

    @property
    def directory_ids(self) -> dict[str, Uuid]:
        """The identity of each directory that is online."""
        return {directory.path: directory.directory_id for directory in self._directories}

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        return self._logs.get(partition)

    def prefer(self, partition: TopicPartition, directory: str) -> None:
        """Create the log of a partition in this directory, if it has to be created."""
        self._preferred[partition] = directory

    def home_of(self, log: PartitionLog) -> LogDirectory:
        return self._homes[log.partition]

    def home_at(self, path: str) -> LogDirectory | None:
        """The log directory of this path, if it is online."""
        return next((each for each in self._directories if each.path == path), None)

    async def create(
        self, partition: TopicPartition, topic_id: Uuid | None, settings: TopicSettings | None = None
    ) -> PartitionLog:
        """The log of a partition, created if need be in the preferred directory or in the one with the fewest logs."""
        existing = self._logs.get(partition)
        if existing is not None:
            return existing
        if not self._directories:
            path, error = next(iter(self.offline.items()))
            raise DiskFailure(path, f"no directory is online: {error.reason}")
        fewest = min(self._directories, key=lambda each: each.log_count)
        directory = self.home_at(self._preferred.pop(partition, "")) or fewest
        path = f"{directory.path}/{partition}"
        try:
            is_new = not self._world.disk.exists(path)
            log = await PartitionLog.open(
                self._world,
                path,
                partition,
                settings or self._defaults,
                topic_id=topic_id,
                was_clean=False,
                open_segments=self.open_segments,
            )
        except DiskFull:
            # The files that were created are used when there is room.
            raise
        except PathUnusable as error:
            self.faults.unopened(partition, path, str(error))
            raise
        except DiskFailure as error:
            self.take_offline(directory.path, error)
            raise
        self.faults.forget(partition)
        self._adopt(log, directory)
        self._unnamed[partition] = log
        log.flushing.is_blank = is_new
        return log

    async def delete(self, partition: TopicPartition) -> None:
        """Delete a log: its directory is renamed at once and removed after file.delete.delay.ms."""
        log, directory = self._logs.get(partition), self._homes.get(partition)
        renamed = await self._rename(partition, DELETE_SUFFIX)
        if renamed is not None and log is not None and directory is not None:
            self._doomed.add(directory.path, renamed, delay_ms=log.settings.file_delete_delay_ms)

    async def set_aside(self, partition: TopicPartition) -> str | None:
        """Take a log out of use and rename its directory so that no partition owns it; returns the new path."""
        return await self._rename(partition, STRAY_SUFFIX)

    async def _rename(self, partition: TopicPartition, suffix: str) -> str | None:
        self.futures.discard(partition)
        log = self._logs.get(partition)
        if log is None:
            self.remove_offline(partition, suffix)
            return None
        directory = self._forget(log)
        self.faults.forget(partition)
        log.abandon()
        try:
            renamed = directory.rename(log.directory, partition, suffix)
        except PathGone:
            return None
        except DiskFailure as error:
            self.take_offline(directory.path, error)
            return None
        if log.cleaned_offset is not None:
            # A new topic of the same name must not use the cleaner checkpoint of the old one.
            await self.checkpoints.write_cleaned(directory)
        return renamed

    async def checkpoint(self) -> None:
        """Write index entries, and the recovery points, log starts and high watermarks of every online directory."""
        await self._name_logs()
        await catch_up(list(self._logs.values()), self.faults.contained)
        for directory in list(self._directories):
            await self.checkpoints.write(directory)

    async def _name_logs(self) -> None:
        """Sync partition.metadata of new logs that have records: after a power cut it tells which topic owns them."""
        for partition, log in list(self._unnamed.items()):
            if self._unnamed.get(partition) is not log:
                continue  # the log was deleted while another one was synced
            if log.end_offset > 0 or log.is_over:
                del self._unnamed[partition]
                with self.faults.contained(log, "identity"):
                    await log.flushing.sync_identity()

    async def checkpoint_cleaned(self, log: PartitionLog) -> None:
        """Write the cleaner checkpoint of the directory of a log that has just been cleaned."""
        directory = self._homes.get(log.partition)
        if directory is not None:
            await self.checkpoints.write_cleaned(directory)

    async def retain_all(self) -> int:
        """Apply retention to every log; returns the number of segments that were dropped."""
        return await self.retention.retain(list(self._logs.values()))

    def expire_producers(self, *, expiration_ms: int) -> None:
        """Drop producers that have been idle for producer.id.expiration.ms."""
        now_ms = self._world.clock.wall_ms()
        for log in self._logs.values():
            log.producers.expire(now_ms, expiration_ms=expiration_ms)

    async def flush_due(self) -> None:
        """Flush the logs that are due by flush.ms or flush.messages."""
        now_ms = self._world.clock.wall_ms()
        for log in list(self._logs.values()):
            if log.is_flush_due(now_ms):
                await self._flush(log, is_whole=True)
        for directory in self._directories:
            if directory.room.is_tight and not directory.room.look():
                # Retention may have been lowered, or more records have expired.
                self.retention.make_room(directory)

    async def close(self, *, clean: bool, broker_epoch: int = -1) -> None:
        """Close every log. A clean end leaves a mark in each directory, so that the next start needs no recovery."""
        await self._tasks.stop()
        await self._doomed.close()
        gate = asyncio.Semaphore(CLOSING_LOGS_MAX)
        logs = [*self._logs.values(), *(future.log for future in self.futures.all())]
        await asyncio.gather(*[self._close(log, gate, clean=clean) for log in logs])
        for directory in list(self._directories):
            if clean:
                await self.checkpoints.write(directory)
            # Logs that could not be closed are recovered at the next start; after a full disk those may be any.
            unclean = {fault.path: fault.name for fault in self.faults.inside(directory.path)}
            unclosed = {each.directory for each in self.logs_in(directory) if not each.is_closed_cleanly}
            if clean and unclosed <= unclean.keys() and directory in self._directories:
                try:
                    await directory.mark_clean(broker_epoch, unclean.values())
                except DiskFull as error:
                    log.warning("no room for the mark of a clean stop", directory=directory.path, reason=error)
                except DiskFailure as error:
                    self.take_offline(directory.path, error)
        self._release()

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        logs = [each for partition, each in self._logs.items() if self._homes[partition] is directory]
        return logs + [each for each in self.futures.inside(directory) if each not in logs]

    async def _close(self, target: PartitionLog, gate: asyncio.Semaphore, *, clean: bool) -> None:
        if not clean:
            self.open_segments.close(target.segments.all())
            return
        async with gate:
            with self.faults.contained(target, "close"):
                try:
                    await target.close()
                except DiskFull as error:
                    log.warning("no room to close a log", partition=target.partition, reason=error)

    def _release(self) -> None:
        for directory in self._directories:
            directory.release()
        self._directories.clear()
        self._logs.clear()
        self._homes.clear()

    # --- behind the scenes ----------------------------------------------------------------------------------------

    def _adopt(self, log: PartitionLog, home: LogDirectory) -> None:
        self.watch(log, home)
        if log.directory.endswith(FUTURE_SUFFIX):
            self.futures.discard(log.partition)  # of two copies one may be left over from an aborted move
            self.futures.adopt(log, home)
            return
        if log.partition in self._logs:
            rival, rivals_home = self._logs[log.partition], self._homes[log.partition]
            rivals_home.log_count -= 1
            log, home = settle_twins((rival, rivals_home), (log, home))
        self._logs[log.partition] = log
        self._homes[log.partition] = home
        home.log_count += 1

    def watch(self, log: PartitionLog, home: LogDirectory) -> None:
        log.on_failure = self._on_failure
        log.on_roll = self._on_roll
        log.on_truncate = self._on_truncate
        log.remove_later = self._remove_later
        log.room = home.room

    def replace(self, new: PartitionLog, home: LogDirectory) -> None:
        """Use a copy in another directory as the log from now on."""
        old_home = self._homes[new.partition]
        old_home.log_count -= 1
        home.log_count += 1
        self.watch(new, home)
        self._logs[new.partition], self._homes[new.partition] = new, home
        self._unnamed.pop(new.partition, None)
        self.checkpoints.write_soon(home)
        self.checkpoints.write_soon(old_home)

    def doom(self, home: LogDirectory, path: str, *, delay_ms: int) -> None:
        self._doomed.add(home.path, path, delay_ms=delay_ms)

    def _on_failure(self, log: PartitionLog, error: DiskFailure) -> None:
        home = log.directory.rpartition("/")[0]
        if isinstance(error, PathUnusable) and self._world.disk.is_directory(home):
            self._take_log_offline(log, error)
        else:
            self.take_offline(home, error)

    def _take_log_offline(self, log: PartitionLog, error: DiskFailure) -> None:
        """Give up one log, or a copy that was to become one; its directory and all other logs stay online."""
        self.futures.forget(log.partition)
        log.abandon()
        if self._logs.get(log.partition) is log:
            self._forget(log)
            self.faults.lost(log, error)
            self.on_log_offline(log.partition)

    def remove_offline(self, partition: TopicPartition, suffix: str) -> None:
        """The partition of a log that is offline was deleted: rename what is left of its directory."""
        fault = self.faults.forget(partition)
        home = self.home_at(fault.home) if fault is not None else None
        if fault is not None and home is not None and self._world.disk.exists(fault.path):
            with suppress(PathUnusable):
                renamed = home.rename(fault.path, partition, suffix)
                if suffix == DELETE_SUFFIX:
                    self.doom(home, renamed, delay_ms=0)

    def _forget(self, log: PartitionLog) -> LogDirectory:
        directory = self._homes.pop(log.partition)
        directory.log_count -= 1
        del self._logs[log.partition]
        self._unnamed.pop(log.partition, None)
        return directory

    def take_offline(self, path: str, error: DiskFailure) -> None:
        """Take a directory and all its logs offline until the next start."""
        if path in self.offline:
            return
        self.offline[path] = error
        self._doomed.forget(path)
        for directory in [each for each in self._directories if each.path == path]:
            self._directories.remove(directory)
            directory.release()
        for partition, home in sorted(self._homes.items()):
            if home.path == path:
                log = self._logs.pop(partition)
                del self._homes[partition]
                log.failure = log.failure or error
                log.abandon()
        self.futures.drop(path)
        self.on_offline(path, error)

    def _on_roll(self, log: PartitionLog) -> None:
        """Sync a segment that was rolled in the background, so that recovery need not read it."""
        self._tasks.start(self._flush(log, is_whole=False), f"flush:{log.partition}")

    def _on_truncate(self, log: PartitionLog) -> None:
        """A log was truncated: write its lower recovery point soon."""
        directory = self._homes.get(log.partition)
        if directory is not None:
            self.futures.was_cut(log)
            self.checkpoints.write_soon(directory)

    async def _flush(self, log: PartitionLog, *, is_whole: bool) -> None:
        with self.faults.contained(log, "flush"):
            await (log.flush() if is_whole else log.flush_closed())

    def _remove_later(self, paths: Sequence[str], delay_ms: int) -> None:
        for path in paths:
            home = path.rpartition("/")[0].rpartition("/")[0]
            self._doomed.add(home, path, delay_ms=delay_ms)
