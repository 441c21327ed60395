"""One log directory: its lock, its identity, its checkpoint files, and the logs in it.

The store decides what happens with the logs. Names that are not ``<topic>-<partition>`` are left alone, except for
leftovers of deletions; the quorum opens the metadata log itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from barnabas.model.errors import BarnabasError, Malformed
from barnabas.model.ids import METADATA_TOPIC, TopicPartition, Uuid
from barnabas.observe.log import logger
from barnabas.storage.checkpoints import (
    CHECKPOINT_BYTES_MAX,
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    CorruptCheckpoint,
    decode_offsets,
    encode_offsets,
)
from barnabas.storage.doomed import DELETE_SUFFIX, FUTURE_SUFFIX
from barnabas.storage.identity import (
    CLEAN_SHUTDOWN_FILE,
    MetaProperties,
    WrongDirectory,
    decode_clean_shutdown,
    encode_clean_shutdown,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.index import CorruptIndex
from barnabas.storage.log import PartitionLog
from barnabas.storage.open_segments import OpenSegments
from barnabas.storage.progress import OnProgress, progress_of
from barnabas.storage.room import Room
from barnabas.storage.settings import TopicSettings
from barnabas.world.disk import Lock, PathUnusable, make_directory, replace
from barnabas.world.world import World

log = logger("directory")

LOCK_FILE: Final = ".lock"
OFFSETS_PER_TURN_MAX: Final = 1000  # offsets of a checkpoint; a worker encodes a larger checkpoint
DELETE_TOKEN_BYTES: Final = 16
DELETE_TOPIC_LENGTH_MAX: Final = 255 - len("-.") - 10 - 2 * DELETE_TOKEN_BYTES - len(DELETE_SUFFIX)


class DamagedLog(BarnabasError):
    """A log that cannot be opened, not even with recovery."""


def parse_partition(name: str) -> TopicPartition | None:
    """The partition of a directory name ``<topic>-<partition>``, or None."""
    topic, dash, number = name.rpartition("-")
    if not (dash and topic and number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


class LogDirectory:
    def __init__(self, world: World, path: str, lock: Lock, directory_id: Uuid) -> None:
        self._world = world
        self.path = path
        self.directory_id = directory_id
        self._lock = lock
        self._checkpoint_lock = asyncio.Lock()
        self._checkpointed: dict[str, bytes] = {}  # content of the checkpoint files that this process wrote
        self.log_count = 0
        self.room = Room(world.disk, path)
        self.is_making_room = False
        self.was_clean = False
        self.clean_broker_epoch = -1
        self.unclean: frozenset[str] = frozenset()  # names of logs that the last clean shutdown could not close

    @classmethod
    async def open(cls, world: World, path: str, *, node_id: int, cluster_id: str) -> LogDirectory:
        """Lock a directory, check its identity, and remove the mark of a clean shutdown."""
        disk = world.disk
        await make_directory(disk, path)
        disk.restrict(path)  # it may have been made by Kafka, or by hand
        metadata = f"{path}/{METADATA_TOPIC}-0"
        if disk.exists(metadata):
            disk.restrict(metadata)  # its log has credentials
        lock = disk.lock(f"{path}/{LOCK_FILE}")
        try:
            properties = read_meta_properties(disk, path)
            directory_id = _checked(properties, path, node_id=node_id, cluster_id=cluster_id)
            if directory_id is None:
                directory_id = world.entropy.uuid()
                await write_meta_properties(disk, path, MetaProperties(cluster_id, node_id, directory_id))
            directory = cls(world, path, lock, directory_id)
            mark = f"{path}/{CLEAN_SHUTDOWN_FILE}"
            if disk.exists(mark):
                directory.was_clean = True
                content = disk.read_all(mark, size_bytes_max=CHECKPOINT_BYTES_MAX)
                directory.clean_broker_epoch, directory.unclean = decode_clean_shutdown(content)
                # Before the first write: after a crash from here on, the next start must recover every log.
                disk.remove(mark)
                await disk.sync_directory(path)
        except BaseException:
            lock.release()
            raise
        return directory

    async def load(
        self,
        settings_of: Callable[[str], TopicSettings],
        open_segments: OpenSegments,
        adopt: Callable[[PartitionLog], None],
        on_damaged: Callable[[TopicPartition, str, str], None],
        on_progress: OnProgress | None = None,
    ) -> None:
        """Open the logs one after the other, with their high watermarks, and pass each to ``adopt``.

        A log that cannot be opened is passed to ``on_damaged``: partition, path and reason.
        """
        disk = self._world.disk
        recovery_points = self.read_checkpoint(RECOVERY_POINT_FILE)
        starts = self.read_checkpoint(LOG_START_FILE)
        high_watermarks = self.read_checkpoint(HIGH_WATERMARK_FILE)
        cleaned = self.read_checkpoint(CLEANER_FILE)
        for name in disk.list(self.path):
            if name.endswith(DELETE_SUFFIX):
                disk.remove_tree(f"{self.path}/{name}")
        partitions = self._partitions()
        progress = None
        if on_progress is not None and not self.was_clean:
            progress = progress_of(disk, self.path, partitions, recovery_points)

        def on_read(size_bytes: int) -> None:
            if progress is not None and on_progress is not None:
                progress.bytes_done += size_bytes
                on_progress(progress)

        for name, partition in partitions.items():
            if progress is not None:
                progress.log = name
            try:
                opened = await self._open_log(
                    name,
                    partition,
                    settings_of(partition.topic),
                    log_start_offset=starts.get(partition, 0),
                    recovery_point=recovery_points.get(partition, 0),
                    cleaned_offset=cleaned.get(partition),
                    open_segments=open_segments,
                    on_read=on_read,
                )
                opened.advance_high_watermark(high_watermarks.get(partition, 0))
                adopt(opened)
            except DamagedLog as error:
                on_damaged(partition, f"{self.path}/{name}", str(error))
            if progress is not None:
                progress.logs_done += 1
                on_read(0)
            await asyncio.sleep(0)

    def _partitions(self) -> dict[str, TopicPartition]:
        """The partitions of the logs and of the unfinished copies in this directory, by directory name."""
        disk, found = self._world.disk, {}
        for name in disk.list(self.path):
            partition = parse_partition(name.rpartition(".")[0] if name.endswith(FUTURE_SUFFIX) else name)
            if partition is not None and partition.topic != METADATA_TOPIC and disk.is_directory(f"{self.path}/{name}"):
                found[name] = partition
        return found

    async def _open_log(
        self, name: str, partition: TopicPartition, settings: TopicSettings, *, recovery_point: int, **known: Any
    ) -> PartitionLog:
        """Open one log; if its files are damaged although the last stop was clean, recover it as after a crash."""
        path = f"{self.path}/{name}"

        async def opened(*, was_clean: bool, recovery_point: int) -> PartitionLog:
            return await PartitionLog.open(
                self._world,
                path,
                partition,
                settings,
                topic_id=None,
                was_clean=was_clean,
                recovery_point=recovery_point,
                **known,
            )

        try:
            return await opened(was_clean=self.was_clean and name not in self.unclean, recovery_point=recovery_point)
        except (Malformed, CorruptIndex, PathUnusable) as error:
            log.warning("log is damaged and is read as a whole", directory=path, reason=error)
        try:
            return await opened(was_clean=False, recovery_point=0)
        except (Malformed, CorruptIndex, PathUnusable) as error:
            raise DamagedLog(f"the log cannot be opened: {error}") from error

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """The offsets of a checkpoint file; empty if there is none or it is damaged."""
        path = f"{self.path}/{name}"
        if not self._world.disk.exists(path):
            return {}
        try:
            return decode_offsets(self._world.disk.read_all(path, size_bytes_max=CHECKPOINT_BYTES_MAX))
        except CorruptCheckpoint:
            return {}

    async def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        # One at a time: two writers of the same file would remove each other's temporary file.
        async with self._checkpoint_lock:
            if len(offsets) > OFFSETS_PER_TURN_MAX:
                content = await self._world.workers.run(encode_offsets, offsets)
            else:
                content = encode_offsets(offsets)
            # A broker at rest would otherwise sync the same files every few seconds.
            if self._checkpointed.get(name) != content:
                await replace(self._world.disk, f"{self.path}/{name}", content)
                self._checkpointed[name] = content

    async def checkpoint(self, logs: Sequence[PartitionLog]) -> None:
        """Write recovery points, starts and high watermarks of the logs in here."""
        await self.write_checkpoint(RECOVERY_POINT_FILE, {log.partition: log.recovery_checkpoint for log in logs})
        # The names of the files have the start of the first segment.
        starts = {log.partition: log.log_start_offset for log in logs}
        bases = {log.partition: log.segments.first.base_offset for log in logs}
        await self.write_checkpoint(LOG_START_FILE, {key: start for key, start in starts.items() if start > bases[key]})
        await self.write_checkpoint(HIGH_WATERMARK_FILE, {log.partition: log.high_watermark for log in logs})

    async def remove_checkpoint(self, name: str) -> None:
        async with self._checkpoint_lock:
            self._checkpointed.pop(name, None)
            self._world.disk.remove(f"{self.path}/{name}")
            await self._world.disk.sync_directory(self.path)

    def rename(self, path: str, partition: TopicPartition, suffix: str) -> str:
        """Rename a partition's directory so that no partition owns it; returns the new path.

        A directory with the delete suffix is removed later, or at the next start; a stray one is kept.
        """
        target = self.new_path(partition, suffix)
        self._world.disk.rename(path, target)
        return target

    def new_path(self, partition: TopicPartition, suffix: str) -> str:
        return self.path_of(partition, suffix, token=self._world.entropy.token(DELETE_TOKEN_BYTES).hex())

    def path_of(self, partition: TopicPartition, suffix: str, *, token: str) -> str:
        return f"{self.path}/{partition.topic[:DELETE_TOPIC_LENGTH_MAX]}-{partition.partition}.{token}{suffix}"

    async def mark_clean(self, broker_epoch: int, unclean: Collection[str]) -> None:
        """Leave the mark of a clean shutdown, which names the logs that the next start has to recover."""
        content = encode_clean_shutdown(broker_epoch, unclean)
        await replace(self._world.disk, f"{self.path}/{CLEAN_SHUTDOWN_FILE}", content)

    def release(self) -> None:
        self._lock.release()


def _checked(properties: MetaProperties | None, path: str, *, node_id: int, cluster_id: str) -> Uuid | None:
    """The directory's id if it is ours, None if it is new; WrongDirectory if it belongs elsewhere."""
    if properties is None:
        return None
    if properties.cluster_id != cluster_id:
        raise WrongDirectory(f"{path} belongs to the cluster {properties.cluster_id}, not {cluster_id}")
    if properties.node_id != node_id:
        raise WrongDirectory(f"{path} belongs to node {properties.node_id}, not {node_id}")
    return properties.directory_id
