"""Logs that move from one directory to another: a copy grows elsewhere and, when it has all of a log, takes its place.

The copy lies in ``<topic>-<partition>.<token>-future``. It takes over in steps, of which a crash may leave any: all of
it is on the device; the old directory is renamed to end in ``.<token>-delete``, and that is synced; only then does the
copy get its own name. So a start that finds the token twice, and no log of that name, knows that the copy is the log
(``finish``); one that finds the log itself goes on copying. Who copies is ``replication.log_moves``; the store has one
of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.storage import trimming
from barnabas.storage.checkpoints import RECOVERY_POINT_FILE
from barnabas.storage.directory import LogDirectory
from barnabas.storage.doomed import DELETE_SUFFIX, FUTURE_SUFFIX, STRAY_SUFFIX
from barnabas.storage.log import PartitionLog
from barnabas.world.disk import DiskFailure, DiskFull
from barnabas.world.world import World

if TYPE_CHECKING:
    from barnabas.storage.store import LogStore

log = logger("store")


@dataclass(slots=True, eq=False)
class FutureLog:
    log: PartitionLog
    home: LogDirectory

    @property
    def token(self) -> str:
        """What tells one move of a partition from another."""
        return self.log.directory.removesuffix(FUTURE_SUFFIX).rpartition(".")[2]


class FutureLogs:
    def __init__(self, world: World, store: LogStore) -> None:
        self._world = world
        self._store = store
        self._by_partition: dict[TopicPartition, FutureLog] = {}

    def get(self, partition: TopicPartition) -> FutureLog | None:
        return self._by_partition.get(partition)

    def all(self) -> list[FutureLog]:
        return list(self._by_partition.values())

    def inside(self, home: LogDirectory) -> list[PartitionLog]:
        return [future.log for future in self._by_partition.values() if future.home is home]

    # --- beginning and giving up ----------------------------------------------------------------------------------

    async def create(self, current: PartitionLog, home: LogDirectory) -> FutureLog:
        """An empty copy in another directory, which begins where the log does; DiskFailure if there is none."""
        assert current.partition not in self._by_partition
        # The log may have been here before: where its recovery began then says nothing of the copy.
        await self._store.checkpoints.write(home)
        self._check_online(home)
        if current.partition in home.read_checkpoint(RECOVERY_POINT_FILE):
            raise DiskFull(home.path, "no room for a checkpoint")
        made = await PartitionLog.open(
            self._world,
            home.new_path(current.partition, FUTURE_SUFFIX),
            current.partition,
            current.settings,
            topic_id=current.topic_id,
            log_start_offset=current.log_start_offset,
            was_clean=False,
            open_segments=self._store.open_segments,
        )
        # What is clean now is copied clean; what is cleaned from now on may have been copied before.
        made.cleaned_offset = current.cleaned_offset
        future = self.adopt(made, home)
        try:
            # Should it take over after a power cut, it must not be one of which nobody knows whose it is.
            await made.flushing.sync_identity()
            self._check_online(home)
        except DiskFailure:
            self.discard(current.partition)
            raise
        return future

    def _check_online(self, home: LogDirectory) -> None:
        """It may have failed while we waited."""
        if home.path in self._store.offline:
            raise self._store.offline[home.path]

    def adopt(self, made: PartitionLog, home: LogDirectory) -> FutureLog:
        self._store.watch(made, home)
        made.on_truncate = lambda each: self._store.checkpoints.write_soon(home)
        made.remove_later = self._remove_now  # nobody reads it yet, and its directory will have another name
        future = self._by_partition[made.partition] = FutureLog(made, home)
        return future

    def discard(self, partition: TopicPartition) -> None:
        """Copy no further; what was copied vanishes."""
        future = self._by_partition.pop(partition, None)
        if future is None or self._store.get(partition) is future.log:
            return
        future.log.abandon()
        self._rename(future, DELETE_SUFFIX)

    def _rename(self, future: FutureLog, suffix: str) -> None:
        made, home = future.log, future.home
        try:
            renamed = home.rename(made.directory, made.partition, suffix)
        except DiskFailure as error:
            self._store.take_offline(home.path, error)
            return
        if suffix == DELETE_SUFFIX:
            self._store.doom(home, renamed, delay_ms=0)

    def forget(self, partition: TopicPartition) -> None:
        """The log or its copy is offline: copy no further. The files stay, and the next start decides about them."""
        future = self._by_partition.pop(partition, None)
        if future is not None:
            future.log.abandon()

    def drop(self, path: str) -> None:
        """A directory has failed: copies in it are gone, and those of logs in it have nothing to copy."""
        for partition, future in list(self._by_partition.items()):
            if future.home.path == path or self._store.get(partition) is None:
                del self._by_partition[partition]
                future.log.abandon()

    def _remove_now(self, paths: Sequence[str], delay_ms: int) -> None:
        for path in paths:
            self._world.disk.remove(path)

    # --- keeping up -----------------------------------------------------------------------------------------------

    def was_cut(self, current: PartitionLog) -> None:
        """A log has lost its end, or all it had: so does the copy, before anything else is written to either."""
        future = self._by_partition.get(current.partition)
        if future is None or future.log is current or future.log.is_over:
            return
        try:
            if current.end_offset < future.log.log_start_offset or current.log_start_offset >= current.end_offset:
                future.log.truncate_fully(current.end_offset)
            else:
                future.log.truncate_to(current.end_offset)
        except DiskFailure as error:
            self._give_up(future, error)

    def _give_up(self, future: FutureLog, error: DiskFailure) -> None:
        """A copy could not be cut: it has what the log has not, so it must not take over."""
        if isinstance(error, DiskFull):
            log.error("no room to cut a copy; it is given up", partition=future.log.partition, reason=error)
            self.discard(future.log.partition)
        else:
            future.log.fail(error)

    # --- taking over ----------------------------------------------------------------------------------------------

    async def take_over(
        self, partition: TopicPartition, *, copy_rest: Callable[[], bool], on_switch: Callable[[PartitionLog], None]
    ) -> bool:
        """Put the copy in the place of the log; False if that cannot be done now.

        ``copy_rest`` copies what little the copy lacks, at once, or says that it is too much. Nobody waits between
        that and the switch, so nothing is lost. Meanwhile no record counts as synced on either side that would not
        be after a power cut.
        """
        future, current = self._by_partition[partition], self._store.get(partition)
        assert current is not None
        made = future.log
        async with current.flushing.paused():
            if not (self._is_alive(future, current) and copy_rest()):
                return False
            await made.flush()
            if not (self._is_alive(future, current) and copy_rest()):
                return False
            if made.flushing.is_running or made.recovery_point < current.recovery_point:
                return False
            async with made.flushing.paused():
                return await self._switch(future, current, on_switch)

    def _is_alive(self, future: FutureLog, current: PartitionLog) -> bool:
        partition = current.partition
        is_known = self._by_partition.get(partition) is future and self._store.get(partition) is current
        return is_known and not (future.log.is_over or current.is_over)

    async def _switch(
        self, future: FutureLog, current: PartitionLog, on_switch: Callable[[PartitionLog], None]
    ) -> bool:
        made, disk = future.log, self._world.disk
        old_home = self._store.home_of(current)
        doomed = old_home.path_of(current.partition, DELETE_SUFFIX, token=future.token)
        try:
            disk.rename(current.directory, doomed)
        except DiskFailure as error:
            self._store.take_offline(old_home.path, error)
            return False
        _succeed(made, current)
        _moved(current, doomed)
        self._store.replace(made, future.home)
        made.remove_later = self._remove_now
        current.abandon()
        on_switch(made)
        try:
            # Should the old name come back after a power cut, nobody could tell which of the two is the log.
            await disk.sync_directory(old_home.path)
        except DiskFailure as error:
            self._store.take_offline(old_home.path, error)
        if self._by_partition.get(made.partition) is not future or self._store.get(made.partition) is not made:
            # Deleted meanwhile, or its disk is gone; then a start with that disk still needs the name.
            if future.home.path not in self._store.offline:
                self._store.doom(old_home, doomed, delay_ms=made.settings.file_delete_delay_ms)
            return True
        del self._by_partition[made.partition]
        target = f"{future.home.path}/{made.partition}"
        try:
            disk.rename(made.directory, target)
            _moved(made, target)
            self._store.watch(made, future.home)
            made.flushing.files_changed(future.home.path)
            await disk.sync_directory(future.home.path)
        except DiskFailure as error:
            self._store.take_offline(future.home.path, error)
            return True
        self._store.doom(old_home, doomed, delay_ms=made.settings.file_delete_delay_ms)
        return True

    # --- after a start --------------------------------------------------------------------------------------------

    async def finish(self, homes: Iterable[LogDirectory]) -> None:
        """Give those copies their names that had taken over when the broker died. Before any log is opened."""
        names = {}
        for home in list(homes):
            try:
                names[home.path] = self._world.disk.list(home.path)
            except DiskFailure as error:
                self._store.take_offline(home.path, error)
        everywhere = {name for inside in names.values() for name in inside}
        for path, inside in names.items():
            for name in inside:
                stem = name.removesuffix(FUTURE_SUFFIX)
                partition = stem.rpartition(".")[0]
                if stem == name or partition in everywhere or f"{stem}{DELETE_SUFFIX}" not in everywhere:
                    continue
                log.warning("log has moved", partition=partition, directory=path)
                try:
                    self._world.disk.rename(f"{path}/{name}", f"{path}/{partition}")
                    await self._world.disk.sync_directory(path)
                except DiskFailure as error:
                    self._store.take_offline(path, error)
                    break

    def settle(self) -> None:
        """All logs are open: a copy of none of them is of no use, unless its log is in a directory that is offline."""
        for partition, future in list(self._by_partition.items()):
            current = self._store.get(partition)
            if current is not None and _is_copy(future, current, self._store.home_of(current)):
                try:
                    _align(future.log, current)
                except DiskFailure as error:
                    self._give_up(future, error)
                continue
            del self._by_partition[partition]
            future.log.abandon()
            if current is not None or future.log.size_bytes == 0:
                self._rename(future, DELETE_SUFFIX)
            elif not self._store.offline:
                log.error("a log that was being copied is gone; the copy is kept aside", partition=partition)
                self._rename(future, STRAY_SUFFIX)


def _is_copy(future: FutureLog, current: PartitionLog, home: LogDirectory) -> bool:
    """Whether it was made of this log, and not of one that had its name before."""
    return future.home is not home and future.log.topic_id == current.topic_id


def _align(made: PartitionLog, current: PartitionLog) -> None:
    """Cut off a copy what its log does not have: a power cut may have left either with more than the other."""
    end = common_end(made, current)
    if made.end_offset > end:
        if end <= made.log_start_offset:
            made.truncate_fully(current.log_start_offset)
        else:
            made.truncate_to(end)


def common_end(one: PartitionLog, other: PartitionLog) -> int:
    """Where two logs part that were one: an offset of one epoch is the same record in both."""
    start, end = max(one.log_start_offset, other.log_start_offset), min(one.end_offset, other.end_offset)
    marks = {start, *(offset for log in (one, other) for _, offset in log.epochs.entries())}
    for mark in sorted(marks):
        if start <= mark < end and one.epochs.epoch_at(mark) != other.epochs.epoch_at(mark):
            return mark
    return end


def _succeed(made: PartitionLog, current: PartitionLog) -> None:
    """Take over what a log knows and its batches do not say."""
    # Compaction may have left no batch of an epoch, and one may have begun that has none yet.
    made.epochs = current.epochs
    made.epochs.is_dirty = made.epochs.is_unwritten = True
    trimming.start_at(made, current.log_start_offset)
    made.epochs.truncate_start(made.log_start_offset)
    made.high_watermark = current.high_watermark
    made.producers = current.producers
    made.settings = current.settings
    current.flushing.successor = made.flushing


def _moved(log: PartitionLog, directory: str) -> None:
    """The files have another place; whoever has them open does not notice, and whoever opens them finds them."""

    def place(path: str) -> str:
        is_inside = path == before or path.startswith(before + "/")
        return directory + path[len(before) :] if is_inside else path

    before, log.directory = log.directory, directory
    for segment in log.segments.all():
        segment.directory = directory
    log.snapshots.directory = directory
    log.snapshots.unsynced = [place(path) for path in log.snapshots.unsynced]
    log.flushing.changed_directories = {place(path) for path in log.flushing.changed_directories}


Housed = tuple[PartitionLog, LogDirectory]


def settle_twins(first: Housed, second: Housed) -> Housed:
    """Two directories hold the same log: the one that knows less is kept under a name that no partition has."""
    worse, better = sorted([first, second], key=lambda each: (each[0].latest_epoch, each[0].end_offset))
    worse[0].abandon()
    kept_in = worse[1].rename(worse[0].directory, worse[0].partition, STRAY_SUFFIX)
    log.error("two directories have one log", partition=better[0].partition, used=better[0].directory, kept_in=kept_in)
    return better
