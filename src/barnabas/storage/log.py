"""One partition's log on one disk: append, read, offsets, truncation. The interface of this package.

What a batch must satisfy is checked before (``validate``), leadership and the high watermark's rules are the
replica's. The data plane is synchronous and leans on the page cache; only ``flush`` and ``close`` wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP, TopicPartition, Uuid
from barnabas.storage import rolling, timestamps, trimming
from barnabas.storage.fetched import UnexpectedOffset, checked_batches
from barnabas.storage.flushing import Flushing
from barnabas.storage.identity import PARTITION_METADATA_FILE, read_partition_metadata, write_partition_metadata
from barnabas.storage.open_segments import OpenSegments
from barnabas.storage.reading import LogRead, LogReader
from barnabas.storage.recovery import Loaded, load
from barnabas.storage.replay import aborted_of, marker_of, take_over
from barnabas.storage.room import BROKERS_OWN_TOPICS, Room
from barnabas.storage.segment import Segment
from barnabas.storage.settings import TopicSettings
from barnabas.storage.timestamps import TimestampedOffset
from barnabas.storage.transactions import AbortedRange, AbortedTransaction, overlapping
from barnabas.storage.validate import Validated
from barnabas.wire.batch import CONTROL, BatchHeader, new_tuple, pack_place
from barnabas.world.disk import Buffer, DiskFailure, DiskFull
from barnabas.world.world import World

__all__ = ["Appended", "LogRead", "PartitionLog", "UnexpectedOffset"]


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False


class PartitionLog:
    def __init__(
        self,
        world: World,
        directory: str,
        partition: TopicPartition,
        settings: TopicSettings,
        loaded: Loaded,
        *,
        topic_id: Uuid | None,
        open_segments: OpenSegments | None = None,
    ) -> None:
        self.clock = world.clock
        self.disk = world.disk
        self.entropy = world.entropy
        self.directory = directory
        self.partition = partition
        self.topic_id = topic_id
        self._settings = settings
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.snapshots = loaded.snapshots
        self.log_start_offset = loaded.log_start_offset
        self.end_offset = loaded.end_offset
        self.high_watermark = loaded.log_start_offset
        # Where the last round of cleaning ended, and how often the end was cut off: both are for the cleaner.
        self.cleaned_offset: int | None = None
        self.cut_count = 0
        self.failure: DiskFailure | None = None
        self.is_closed = self.is_closed_cleanly = False
        self.room: Room | None = None  # these are set by the store; a log that stands alone may fill its disk
        self.on_failure: Callable[[PartitionLog, DiskFailure], None] = lambda log, error: None
        self.on_roll: Callable[[PartitionLog], None] = lambda log: None
        self.on_truncate: Callable[[PartitionLog], None] = lambda log: None
        self.remove_later: Callable[[Sequence[str], int], None] = self._remove_now
        self.open_segments = open_segments or OpenSegments()
        self.segments.watch(self.open_segments.opened)
        self.flushing = Flushing(self, loaded.recovery_point, now_ms=self.clock.wall_ms())
        if loaded.is_changed:
            self.flushing.files_changed()
        self.reader = LogReader(self.segments, self.open_segments, self.fail)

    @classmethod
    async def open(
        cls,
        world: World,
        directory: str,
        partition: TopicPartition,
        settings: TopicSettings,
        *,
        topic_id: Uuid | None,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        was_clean: bool,
        cleaned_offset: int | None = None,
        open_segments: OpenSegments | None = None,
        on_read: Callable[[int], None] | None = None,
    ) -> PartitionLog:
        """Open what is in the directory, or begin an empty log in it."""
        disk = world.disk
        is_new = not disk.exists(directory)
        disk.make_directory(directory)
        known_id = read_partition_metadata(disk, directory)
        if topic_id is not None and known_id is not None and topic_id != known_id:
            raise ApiError(errors.INCONSISTENT_TOPIC_ID, f"{directory} belongs to the topic {known_id}, not {topic_id}")
        loaded = await load(
            disk,
            directory,
            settings,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            was_clean=was_clean,
            cleaned_offset=cleaned_offset,
            now_ms=world.clock.wall_ms(),
            on_read=on_read,
        )
        log = cls(
            world, directory, partition, settings, loaded, topic_id=topic_id or known_id, open_segments=open_segments
        )
        log.cleaned_offset = cleaned_offset
        if is_new or not was_clean:
            # A process that was killed may have made files and synced none of their names.
            log.flushing.files_changed()
            log.flushing.files_changed(directory.rpartition("/")[0])
            log.snapshots.unsynced.append(f"{directory}/{PARTITION_METADATA_FILE}")
        if topic_id is not None and known_id is None:
            write_partition_metadata(disk, directory, topic_id)
            log.snapshots.unsynced.append(f"{directory}/{PARTITION_METADATA_FILE}")
            log.flushing.files_changed()
        if loaded.is_cut:
            # What was cut off must not come back after the next crash, behind records that are written from now on.
            with suppress(DiskFull):
                await log.flush()
        return log

    # --- what it knows of itself ----------------------------------------------------------------------------------

    @property
    def settings(self) -> TopicSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: TopicSettings) -> None:
        self._settings = settings
        for segment in self.segments.all():
            segment.settings = settings

    @property
    def is_over(self) -> bool:
        return self.is_closed or self.failure is not None

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is on the device."""
        return self.flushing.recovery_point

    @property
    def recovery_checkpoint(self) -> int:
        """The recovery point as a checkpoint file may state it: at times a little less."""
        return self.flushing.checkpoint

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """Below this offset the fate of every transaction is known and replicated."""
        unstable = self.producers.first_unstable_offset
        if 0 <= unstable < self.high_watermark:
            return max(unstable, self.log_start_offset)
        return self.high_watermark

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest_epoch

    def begin_epoch(self, epoch: int, start_offset: int) -> None:
        self.epochs.assign(epoch, start_offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_of(epoch, end_offset=self.end_offset)

    # --- writing --------------------------------------------------------------------------------------------------

    def append_as_leader(
        self, validated: Validated, *, leader_epoch: int, now_ms: int, transaction_version: int = 0
    ) -> Appended:
        """Give one batch the next offsets and write it; a duplicate is answered with the offsets it has."""
        if self.failure is not None:
            raise self.failure
        records, header, max_timestamp, append_time_ms, is_client = validated
        base_offset = self.end_offset
        last_offset = base_offset + header[6]
        has_producer = header[9] >= 0
        marker = None
        if has_producer:
            if header[5] & CONTROL:
                marker = marker_of(records, 0, header)
                if marker is not None:
                    self.producers.check_marker(header, marker, transaction_version=transaction_version)
            else:
                repeated = self.producers.check(header, is_client=is_client, transaction_version=transaction_version)
                if repeated is not None:
                    first, last = repeated.first_offset, repeated.last_offset
                    return Appended(first, last, repeated.timestamp, self.log_start_offset, is_duplicate=True)
        size_bytes = len(records)
        if size_bytes > self._settings.segment_bytes:
            raise ApiError(errors.RECORD_LIST_TOO_LARGE, f"{size_bytes} bytes do not fit into one segment")
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, base_offset)
        pack_place(records, 0, base_offset, header[1], leader_epoch)
        try:
            if is_client and self.room is not None:
                self.room.take(size_bytes)
            if self.epochs.is_unwritten:
                self.flushing.write_epochs()
            segment = self.segments.active
            if segment.must_roll(size_bytes, last_offset, max_timestamp, now_ms):
                segment = rolling.roll(self, base_offset, now_ms)
            segment.append(records, base_offset, last_offset, max_timestamp)
            self.end_offset = last_offset + 1
            if has_producer:
                take_over(self.producers, header, marker, base_offset, segment)
        except DiskFailure as error:
            # Once the batch is in the log, what belongs to it must be there too.
            self.fail(error, is_final=self.end_offset != base_offset)
            pack_place(records, 0, 0, header[1], NO_LEADER_EPOCH)  # whoever tries again finds it as it came
            raise
        return new_tuple(Appended, (base_offset, last_offset, append_time_ms, self.log_start_offset, False))

    def append_as_follower(self, records: Buffer, *, leader_epoch_max: int | None, now_ms: int) -> Appended:
        """Write the batches of a leader as they are; a batch that was cut off at the end is left for the next fetch."""
        if self.failure is not None:
            raise self.failure
        batches = checked_batches(records, end_offset=self.end_offset, leader_epoch_max=leader_epoch_max)
        base_offset = batches[0][1].base_offset if batches else self.end_offset
        group: list[BatchHeader] = []
        start = end = 0
        try:
            if self.room is not None and self.partition.topic not in BROKERS_OWN_TOPICS:
                self.room.take(len(records))
            for position, header in batches:
                segment = self.segments.active
                is_first = not group
                if segment.must_roll(end - start + header.size_bytes, header.last_offset, header.max_timestamp, now_ms):
                    self._append_group(records, start, end, group)
                    rolling.roll_before(self, header, now_ms)
                    is_first = True
                if is_first:
                    group, start = [], position
                group.append(header)
                end = position + header.size_bytes
            self._append_group(records, start, end, group)
        except DiskFailure as error:
            # What was written of it before the disk was full is in the log as a whole; the rest is fetched again.
            self.fail(error)
            raise
        return Appended(base_offset, self.end_offset - 1, NO_TIMESTAMP, self.log_start_offset)

    def _append_group(self, records: Buffer, start: int, end: int, headers: list[BatchHeader]) -> None:
        if not headers:
            return
        segment = self.segments.active
        for header in headers:
            if header.leader_epoch > self.epochs.latest_epoch:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        if self.epochs.is_unwritten:
            self.flushing.write_epochs()
        segment.append_group(memoryview(records)[start:end], headers)
        position = start
        for header in headers:
            self.end_offset = header.next_offset
            if header.producer_id >= 0:
                take_over(self.producers, header, marker_of(records, position, header), header.base_offset, segment)
            position += header.size_bytes
        headers.clear()

    def roll(self, now_ms: int) -> None:
        """Begin a new segment, unless the active one is still empty."""
        if self.segments.active.size_bytes:
            rolling.roll(self, self.end_offset, now_ms)

    def fail(self, error: DiskFailure, *, is_final: bool = False) -> None:
        """The disk has failed: nothing is written here any more. A disk that is merely full may have room later."""
        if isinstance(error, DiskFull) and not is_final:
            if self.room is not None:
                self.room.full(error)
        elif self.failure is None:
            self.failure = error
            self.on_failure(self, error)

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, *, size_bytes_max: int, end_offset_max: int, at_least_one: bool) -> LogRead:
        """The bytes from the batch that holds an offset on, within one segment and below ``end_offset_max``."""
        if offset < self.log_start_offset or offset > self.end_offset:
            raise ApiError(
                errors.OFFSET_OUT_OF_RANGE, f"{offset} is not within [{self.log_start_offset}, {self.end_offset}]"
            )
        return self.reader.read(
            offset,
            size_bytes_max=size_bytes_max,
            end_offset=self.end_offset,
            end_offset_max=end_offset_max,
            at_least_one=at_least_one,
        )

    def offset_for_time(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record at or after a moment; None if there is none."""
        return timestamps.offset_for_time(
            self.segments.from_offset(self.log_start_offset), timestamp_ms, start_offset=self.log_start_offset
        )

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record that has the largest timestamp; None if there are no records."""
        return timestamps.offset_of_max_timestamp(self.segments.from_offset(self.log_start_offset))

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """What a reader of [start, end) must know to leave out aborted records."""
        return overlapping((self.aborted_of(segment) for segment in self.segments.from_offset(start)), start, end)

    def aborted_of(self, segment: Segment) -> list[AbortedRange]:
        return aborted_of(segment, self.snapshots, self.segments, start=self.log_start_offset)

    # --- offsets that move ----------------------------------------------------------------------------------------

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark up, never past the end; whether it moved."""
        offset = offset if offset < self.end_offset else self.end_offset
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.high_watermark_moved(offset)
        return True

    def truncate_to(self, offset: int) -> None:
        """Cut the log so that it ends at an offset."""
        trimming.truncate_to(self, offset)

    def truncate_fully(self, start_offset: int) -> None:
        """Drop everything and begin at an offset."""
        trimming.truncate_fully(self, start_offset)

    def delete_records(self, offset: int) -> None:
        """Let the log start at an offset; the files below it go with the next ``retain``."""
        if offset > self.high_watermark:
            raise ApiError(errors.OFFSET_OUT_OF_RANGE, f"{offset} is above the high watermark {self.high_watermark}")
        trimming.start_at(self, offset)

    def retain(self, now_ms: int) -> int:
        """Drop what the topic's settings do not keep; how many segments that were."""
        return trimming.retain(self, now_ms)

    # --- the device -----------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Return when all that was appended before the call is on the device."""
        await self.flushing.flush()

    async def flush_closed(self) -> None:
        """As ``flush``, but only for the segments that take no more batches."""
        await self.flushing.flush(with_active=False)

    def is_flush_due(self, now_ms: int) -> bool:
        unflushed = self.end_offset - self.flushing.recovery_point
        return unflushed > 0 and (
            unflushed >= self._settings.flush_messages
            or now_ms - self.flushing.last_flush_ms >= self._settings.flush_ms
        )

    async def close(self) -> None:
        """Leave files that need no recovery, if the disk lets us."""
        try:
            if self.failure is None:
                if (self.producers.by_id or self.snapshots.offsets) and self.end_offset not in self.snapshots.offsets:
                    self.snapshots.take(self.producers.by_id.values(), self.end_offset)
                    self.flushing.files_changed()
                await self.flushing.close()
                self.is_closed_cleanly = True
        finally:
            self.is_closed = True
            self.open_segments.close(self.segments.all())

    def abandon(self) -> None:
        """The log is being deleted or its disk is gone: readers may finish, nothing else happens here any more."""
        self.is_closed = True
        for segment in self.segments.all():
            self.open_segments.retire(segment)

    def _remove_now(self, paths: Sequence[str], delay_ms: int) -> None:
        for path in paths:
            self.disk.remove(path)
