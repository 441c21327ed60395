"""The scan of a log after a crash: every batch from the recovery point on is checked, and it ends before a bad one.

A checksum covers a batch but not its offset, its leader epoch and its length. What a flipped bit makes of those is told
by the neighbours: batches follow each other without gaps unless the log was compacted, and their epochs are those that
``leader-epoch-checkpoint`` names. Indexes and producers are made anew on the way. Called by ``recovery`` alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.model.errors import CorruptBatch, Malformed
from barnabas.model.ids import NO_LEADER_EPOCH
from barnabas.storage.batch_file import REBUILD_BYTES
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.index import RELATIVE_OFFSET_MAX
from barnabas.storage.producer_snapshot import ProducerSnapshots
from barnabas.storage.producers import Producers
from barnabas.storage.replay import marker_of, rebuild, take_over
from barnabas.storage.segment import Segment, time_of
from barnabas.storage.segments import Segments
from barnabas.storage.transactions import Marker
from barnabas.wire.batch import CHECKED_FROM, HEADER_BYTES, BatchHeader, crc_matches, read_header

OFFSET_MAX: Final = 2**63 - 1


def remove_segments(segments: list[Segment]) -> None:
    for segment in segments:
        segment.close()
        segment.remove()


class _Batch(NamedTuple):
    """A batch that is right by itself; what comes after it may still speak against it."""

    position: int
    header: BatchHeader
    marker: Marker | None
    is_behind_gap: bool


class LogScan:
    def __init__(
        self,
        segments: list[Segment],
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
        *,
        cleaned_offset: int | None,
        start: int,
        on_read: Callable[[int], None] | None = None,
    ) -> None:
        self._segments = segments
        self._epochs = epochs
        # None if there was no sound file: then the batches are all that tells of epochs.
        self._known_epochs = None if epochs.is_unwritten else LeaderEpochs.of(epochs.entries())
        self._snapshots = snapshots
        self._on_read = on_read or (lambda size_bytes: None)
        # Below it compaction has left gaps. Our own leaves none between segments, but Kafka's does.
        self._cleaned_offset = cleaned_offset or 0
        self._start = start
        self._producers = Producers()
        self._latest_epoch = -1
        self._has_seen_gap = False

    async def run(self, recovery_point: int) -> bool:
        """Check the segments from the recovery point on and drop all after the first fault; whether there was one."""
        segments = self._segments
        first = Segments(segments).floor_index(recovery_point)
        end = segments[first].base_offset
        self._epochs.truncate_end(end)
        rebuild(self._producers, self._snapshots, Segments(segments[: first + 1]), start=self._start, end=end)
        for index in range(first, len(segments)):
            segment = segments[index]
            if index > first and not self._follows(end, segment):
                remove_segments(segments[index:])
                del segments[index:]
                return True
            next_base = segments[index + 1].base_offset if index + 1 < len(segments) else None
            end, is_cut = await self._check(segment, next_base)
            if is_cut:
                remove_segments(segments[index + 1 :])
                del segments[index + 1 :]
                return True
        return False

    def _follows(self, end: int, segment: Segment) -> bool:
        """Whether a segment can come next: a gap is only right where compaction leaves gaps, an overlap never is.

        A follower has not compacted anything itself, but has the gaps of its leader, within its segments as well.
        """
        if segment.base_offset <= self._cleaned_offset or self._has_seen_gap:
            return segment.base_offset >= end
        return segment.base_offset == end

    async def _check(self, segment: Segment, next_base: int | None) -> tuple[int, bool]:
        """Read one segment, make its indexes anew, cut it before the first fault: (where it ends, was it cut)."""
        segment.reset_indexes()
        segment.reset_aborted()
        if segment.size_bytes or self._producers.by_id or self._snapshots.offsets:
            # An empty log has nobody to remember: after a crash there may be thousands of them.
            self._snapshots.take(self._producers.by_id.values(), segment.base_offset)
        position, end_offset = 0, segment.base_offset
        last: _Batch | None = None  # taken over when the next one bears it out
        is_contradicted = False
        try:
            while position < segment.size_bytes:
                at = 0
                data = self._read_piece(segment, position)
                while at < len(data):
                    header = self._checked_header(segment, data, at, position)
                    if header is None:
                        break
                    if header.base_offset < end_offset:
                        is_contradicted = True
                        raise CorruptBatch(f"offset {header.base_offset} does not follow {end_offset}")
                    marker = marker_of(data, at, header) if header.producer_id >= 0 else None
                    if last is not None:
                        self._take(segment, last)
                    # Below the log's start anything may be missing: Kafka, and we on a full disk, cut back to there.
                    is_behind_gap = header.base_offset > max(end_offset, self._start)
                    last = _Batch(position + at, header, marker, is_behind_gap)
                    at += header.size_bytes
                    end_offset = header.next_offset
                position += at
                self._on_read(at)
                await asyncio.sleep(0)
        except Malformed:
            position += at
        if last is not None and last.is_behind_gap and (is_contradicted or self._is_stray(end_offset, next_base)):
            # Of two batches that contradict each other, the one after a gap is the one whose offset has rotted.
            position, last = last.position, None
        if last is not None:
            self._take(segment, last)
        is_cut = position < segment.size_bytes
        if is_cut:
            segment.opened().truncate(position)
            segment.size_bytes = position
            end_offset = segment.read_end_offset()
        segment.write_indexes(is_closing=True)
        segment.close()
        return end_offset, is_cut

    def _is_stray(self, end_offset: int, next_base: int | None) -> bool:
        """Whether the last batch of a segment, which follows a gap, cannot be where it is."""
        if next_base is None:
            return end_offset > self._cleaned_offset and not self._has_seen_gap
        return end_offset > next_base

    def _read_piece(self, segment: Segment, position: int) -> bytes:
        """A piece that holds at least the whole batch it begins with, if that is not a very large one."""
        return segment.read_batch(position, min(REBUILD_BYTES, segment.size_bytes - position))

    def _checked_header(self, segment: Segment, data: bytes, at: int, position: int) -> BatchHeader | None:
        """The batch, if it is whole and right by itself; None if this piece ends within it."""
        if len(data) - at < HEADER_BYTES and at:
            return None
        header = read_header(data, at)
        if at + header.size_bytes > len(data):
            if at:
                return None
            if not _large_crc_matches(segment, position, header):
                raise CorruptBatch("the batch is torn")
        elif not crc_matches(data, at, header):
            raise CorruptBatch("the batch is torn")
        if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or header.last_offset >= OFFSET_MAX:
            raise CorruptBatch(f"offset {header.last_offset} is not one of this segment")
        self._check_epoch(header)
        return header

    def _check_epoch(self, header: BatchHeader) -> None:
        epoch = header.leader_epoch
        if epoch < NO_LEADER_EPOCH or 0 <= epoch < self._latest_epoch:
            # Batches of an older leader behind those of a newer one were cut off once and have come back.
            raise CorruptBatch(f"epoch {epoch} does not follow {self._latest_epoch}")
        if self._known_epochs is not None:
            known = self._known_epochs.epoch_at(header.base_offset)
            if NO_LEADER_EPOCH not in (known, epoch) and epoch != known:
                raise CorruptBatch(f"offset {header.base_offset} was written in epoch {known}, not {epoch}")
        self._latest_epoch = max(self._latest_epoch, epoch)

    def _take(self, segment: Segment, batch: _Batch) -> None:
        header = batch.header
        self._has_seen_gap |= batch.is_behind_gap and header.base_offset >= self._cleaned_offset
        segment.note_batch(batch.position, header.size_bytes, header.base_offset, header.last_offset, time_of(header))
        if header.leader_epoch > self._epochs.latest_epoch:
            self._epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            take_over(self._producers, header, batch.marker, header.base_offset, segment)


def _large_crc_matches(segment: Segment, position: int, header: BatchHeader) -> bool:
    """As ``crc_matches``, for a batch that is never in memory as a whole: its length may be a lie."""
    if position + header.size_bytes > segment.size_bytes:
        return False
    from crc32c import crc32c  # only now: its import takes long, and batches of this size are rare

    checksum = 0
    at, end = position + CHECKED_FROM, position + header.size_bytes
    while at < end:
        data = segment.read_batch(at, min(REBUILD_BYTES, end - at))
        if not data:
            return False
        checksum = crc32c(data, checksum)
        at += len(data)
    return checksum == header.crc
