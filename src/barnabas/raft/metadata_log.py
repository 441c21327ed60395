"""The metadata log on a disk: a partition's log, and beside it the snapshots that replace its beginning.

Here is performed what the machine orders: batches written, cut and read, snapshots taken, downloaded, installed and
dropped. The log starts where its oldest snapshot ends (at zero for the bootstrap checkpoint), so the files alone say
where that is. Decisions are the machine's, turns are the driver's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NO_LEADER_EPOCH, TopicPartition
from barnabas.raft.control_records import control_batch, control_messages, facts_of
from barnabas.raft.events import Append, LeaderChange, VotersChange
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, LogView, OffsetAndEpoch
from barnabas.raft.settings import BATCH_BYTES_MAX, RaftSettings
from barnabas.raft.snapshot import (
    PartialSnapshot,
    SnapshotReader,
    check_snapshot,
    list_snapshots,
    remove_leftovers,
    snapshot_path,
    write_snapshot,
)
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, VoterSet
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Validated
from barnabas.wire.batch import iterate, read_header
from barnabas.world.disk import DiskFull, make_directory
from barnabas.world.world import World

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
ROOM_BYTES_MIN: Final = 64 * 1024  # what must be free beside a batch: indexes, a new segment, the quorum's state
CHUNK_BYTES: Final = 1 << 20  # what is read of the log in one go


class MetadataLog:
    def __init__(self, world: World, log: PartitionLog, snapshots: list[OffsetAndEpoch]) -> None:
        self._world = world
        self._disk = world.disk
        self._log = log
        self.directory = log.directory
        self.snapshots = snapshots  # oldest first; the first of them is where the log starts
        self._download: PartialSnapshot | None = None

    @classmethod
    async def open(
        cls, world: World, directory: str, settings: RaftSettings, *, initial_voters: VoterSet | None
    ) -> MetadataLog:
        """Open what is there. An empty directory becomes a new log if the first voters are given."""
        disk = world.disk
        await make_directory(disk, directory)
        remove_leftovers(disk, directory)
        snapshots = list_snapshots(disk, directory)
        is_new = not snapshots and not any(name.endswith(".log") for name in disk.list(directory))
        if is_new and initial_voters is not None:
            await _bootstrap(world, directory, initial_voters)
            snapshots = [BOOTSTRAP_SNAPSHOT]
        log = await PartitionLog.open(
            world,
            directory,
            METADATA_PARTITION,
            _log_settings(settings),
            topic_id=METADATA_TOPIC_ID,
            log_start_offset=snapshots[0].offset if snapshots else 0,
            # Before a snapshot is finished, the log below it is synced.
            recovery_point=snapshots[-1].offset if snapshots else 0,
            was_clean=False,
        )
        # A snapshot that was dropped may be back after a crash; the records after it are not.
        metadata_log = cls(world, log, [known for known in snapshots if known.offset >= log.log_start_offset])
        await metadata_log._finish_install()
        # What is in a snapshot is committed, whoever leads.
        log.advance_high_watermark(metadata_log.snapshots[-1].offset if metadata_log.snapshots else 0)
        await log.flush()
        return metadata_log

    async def _finish_install(self) -> None:
        """A crash may have come between a downloaded snapshot and the cut of the log that it replaces."""
        latest = self.latest_snapshot
        if latest is None:
            return
        # A snapshot of our own is of this log: the record before its end is there, in its epoch. One that came from a
        # leader may have replaced records that were never committed, even of a later epoch than its own.
        log, epoch = self._log, NO_LEADER_EPOCH
        if latest.offset > log.log_start_offset:
            epoch = log.epochs.epoch_at(latest.offset - 1)
        if log.end_offset < latest.offset or epoch not in (NO_LEADER_EPOCH, latest.epoch):
            await self._restart_at(latest)

    @property
    def partition_log(self) -> PartitionLog:
        return self._log

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def start_offset(self) -> int:
        return self.snapshots[0].offset if self.snapshots else 0

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1] if self.snapshots else None

    def view(self) -> LogView:
        """The facts of what is on the disk, all of which is durable now. Records are read from the last snapshot on."""
        view = LogView()
        if self.snapshots:
            last = self.snapshots[-1]
            reader = self.open_snapshot(last)
            reader.close()
            view.restart_at(last, reader.voter_set, reader.kraft_version)
            view.start_offset, view.earliest_snapshot = self.start_offset, self.snapshots[0]
            view.epochs = [(epoch, start) for epoch, start in self._log.epochs.entries() if start < last.offset]
        offset = view.end_offset
        while offset < self._log.end_offset:
            chunk = self.read(offset, end_offset=self._log.end_offset, size_bytes_max=CHUNK_BYTES)
            for position, header in iterate(chunk):
                if header.is_control:
                    facts = facts_of(chunk, position, header)
                else:
                    facts = BatchFacts(header.base_offset, header.last_offset, header.leader_epoch)
                view.append(facts._replace(base_offset=max(facts.base_offset, view.end_offset)))
            assert view.end_offset > offset, "a read brings at least one batch"
            offset = view.end_offset
        view.synced_offset = view.end_offset
        view.latest_snapshot = self.latest_snapshot
        return view

    # Records ----------------------------------------

    def append(self, effect: Append) -> None:
        """Write a batch of our own."""
        payload, now_ms = effect.payload, self._world.clock.wall_ms()
        if isinstance(payload, LeaderChange | VotersChange):
            messages = control_messages(payload)
            payload = control_batch(messages, base_offset=effect.base_offset, epoch=effect.epoch, now_ms=now_ms)
        assert isinstance(payload, bytearray)
        header = read_header(payload)
        assert header.record_count == effect.record_count
        validated = Validated(payload, header, header.max_timestamp, is_client=False)
        appended = self._log.append_as_leader(validated, leader_epoch=effect.epoch, now_ms=now_ms)
        assert appended.base_offset == effect.base_offset

    def append_fetched(self, records: object, *, end_offset: int) -> None:
        assert isinstance(records, bytes | bytearray | memoryview)
        self._log.append_as_follower(records, leader_epoch_max=None, now_ms=self._world.clock.wall_ms())
        assert self._log.end_offset == end_offset

    def truncate(self, end_offset: int) -> None:
        self._log.truncate_to(end_offset)

    def committed(self, high_watermark: int) -> None:
        self._log.advance_high_watermark(high_watermark)

    def check_room(self, size_bytes: int) -> None:
        """Whether a batch surely fits on the disk: one that was decided and cannot be written ends everything."""
        if self._disk.free_bytes(self.directory) < size_bytes + ROOM_BYTES_MIN:
            raise ApiError(errors.KAFKA_STORAGE_ERROR, f"no space is left for the metadata in {self.directory}")

    async def sync(self) -> None:
        await self._log.flush()

    def read(self, offset: int, *, end_offset: int, size_bytes_max: int) -> bytes:
        """Batches from an offset on: at least one, and perhaps a cut one at the end."""
        read = self._log.read(offset, size_bytes_max=size_bytes_max, end_offset_max=end_offset, at_least_one=True)
        if read.records is None:
            return b""
        return read.records.file.read(read.records.position, read.records.size_bytes)

    # Snapshots ----------------------------------------

    def open_snapshot(self, snapshot: OffsetAndEpoch) -> SnapshotReader:
        return SnapshotReader(self._disk, snapshot_path(self.directory, snapshot))

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, size_bytes_max: int) -> tuple[bytes, int]:
        """A piece of a snapshot and the size of the whole, for a replica that downloads it."""
        if snapshot not in self.snapshots or snapshot == BOOTSTRAP_SNAPSHOT:
            raise ApiError(errors.SNAPSHOT_NOT_FOUND)
        file = self._disk.open(snapshot_path(self.directory, snapshot))
        try:
            if not 0 <= position < file.size_bytes:
                raise ApiError(errors.POSITION_OUT_OF_RANGE)
            return file.read(position, size_bytes_max), file.size_bytes
        finally:
            file.close()

    async def create_snapshot(
        self, view: LogView, snapshot: OffsetAndEpoch, append_time_ms: int, records: Iterable[bytes]
    ) -> None:
        await self._log.flush()
        part = PartialSnapshot(self._disk, self.directory, snapshot)
        try:
            await write_snapshot(
                part,
                records,
                append_time_ms=append_time_ms,
                now_ms=self._world.clock.wall_ms(),
                kraft_version=view.kraft_versions.at(snapshot.offset - 1) or 0,
                voter_set=view.voter_sets.at(snapshot.offset - 1),
            )
        except DiskFull:
            part.discard()
            raise
        self.snapshots = sorted({*self.snapshots, snapshot})
        # The next start looks only at segments that end after the snapshot; and only whole segments can be dropped.
        self._log.roll(self._world.clock.wall_ms())

    def begin_download(self, snapshot: OffsetAndEpoch) -> None:
        if self._download is not None:
            self._download.discard()
        self._download = PartialSnapshot(self._disk, self.directory, snapshot)

    def append_download(self, data: object) -> None:
        assert self._download is not None
        assert isinstance(data, bytes)
        self._download.append(data)

    async def install(self, snapshot: OffsetAndEpoch) -> SnapshotReader:
        """Make the download the beginning of the log. CorruptSnapshot if it is none; then it is gone."""
        download, self._download = self._download, None
        assert download is not None
        assert download.snapshot == snapshot
        is_sound = False
        try:
            await check_snapshot(self._disk, download.path)
            is_sound = True
        finally:
            if not is_sound:
                download.discard()
        await download.finish()
        self.snapshots = sorted({*self.snapshots, snapshot})
        await self._restart_at(snapshot)
        return self.open_snapshot(snapshot)

    async def _restart_at(self, snapshot: OffsetAndEpoch) -> None:
        self._log.truncate_fully(snapshot.offset)
        await self._log.flush()
        self._drop_snapshots_before(snapshot)

    async def start_after(self, snapshot: OffsetAndEpoch) -> bool:
        """Give up what is older than one of our snapshots. Older snapshots go first: they say where the log starts.

        False if that one has gone too meanwhile, because a newer one from the leader was installed.
        """
        self._drop_snapshots_before(snapshot)
        await self._disk.sync_directory(self.directory)
        if snapshot not in self.snapshots:
            return False
        self._log.delete_records(snapshot.offset)
        self._log.retain(self._world.clock.wall_ms())
        return True

    def _drop_snapshots_before(self, snapshot: OffsetAndEpoch) -> None:
        for older in [known for known in self.snapshots if known < snapshot]:
            self._disk.remove(snapshot_path(self.directory, older))
            self.snapshots.remove(older)

    def expendable(self, settings: RaftSettings, *, now_ms: int) -> OffsetAndEpoch | None:
        """The snapshot that could be the new beginning, if the old one is too old or all is too large together."""
        if len(self.snapshots) < 2:
            return None
        sizes = [self._disk.size_bytes(snapshot_path(self.directory, known)) for known in self.snapshots]
        is_large = 0 <= settings.max_retention_bytes < self._log.size_bytes + sum(sizes)
        reader = self.open_snapshot(self.snapshots[0])
        reader.close()
        is_old = 0 <= settings.max_retention_ms < now_ms - reader.append_time_ms
        return self.snapshots[1] if is_large or is_old else None

    async def close(self) -> None:
        if self._download is not None:
            self._download.discard()
            self._download = None
        await self._log.close()


async def _bootstrap(world: World, directory: str, voters: VoterSet) -> None:
    """The checkpoint before all records: from the first one on, the voters are those in the log (KIP-853)."""
    part = PartialSnapshot(world.disk, directory, BOOTSTRAP_SNAPSHOT)
    now_ms = world.clock.wall_ms()
    await write_snapshot(
        part,
        (),
        append_time_ms=now_ms,
        now_ms=now_ms,
        kraft_version=KRAFT_VERSION_RECONFIGURABLE,
        voter_set=voters,
    )


def _log_settings(settings: RaftSettings) -> TopicSettings:
    return TopicSettings(
        max_message_bytes=BATCH_BYTES_MAX,
        segment_bytes=settings.log_segment_bytes,
        segment_ms=settings.log_segment_ms,
        retention_ms=-1,  # snapshots say what may go
        retention_bytes=-1,
    )
