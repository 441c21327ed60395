"""From the files in a directory to a sound log, whatever a crash has left of them.

After a clean shutdown nothing is scanned: sizes are looked up and the rest is read when it is needed. Otherwise every
batch above the recovery point is checked, the log ends before the first bad one, and indexes, epochs and producers are
made anew from what is left. Called by ``PartitionLog.open`` alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from barnabas.model.errors import CorruptBatch
from barnabas.storage.batch_file import DELETED, LOG, REBUILD_BYTES, SUFFIXES, file_name
from barnabas.storage.checkpoints import CHECKPOINT_BYTES_MAX, LEADER_EPOCH_FILE, CorruptCheckpoint
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.index import RELATIVE_OFFSET_MAX
from barnabas.storage.producer_snapshot import SNAPSHOT, ProducerSnapshots
from barnabas.storage.producers import Producers
from barnabas.storage.replay import marker_of, rebuild, take_over
from barnabas.storage.segment import Segment, time_of
from barnabas.storage.segments import Segments
from barnabas.storage.settings import TopicSettings
from barnabas.wire.batch import HEADER_BYTES, BatchHeader, crc_matches, read_header
from barnabas.world.disk import Disk

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
OFFSET_DIGITS: Final = 20


@dataclass(slots=True)
class Loaded:
    """What a log begins with."""

    segments: Segments
    epochs: LeaderEpochs
    producers: Producers
    snapshots: ProducerSnapshots
    log_start_offset: int
    end_offset: int
    recovery_point: int
    is_changed: bool  # files were created, cut or removed


async def load(
    disk: Disk,
    directory: str,
    settings: TopicSettings,
    *,
    log_start_offset: int,
    recovery_point: int,
    was_clean: bool,
    has_gaps: bool,
    now_ms: int,
) -> Loaded:
    names = disk.list(directory)
    is_changed = _finish_swaps(disk, directory, names)
    if is_changed:
        names = disk.list(directory)
    found = _segments_of(disk, directory, settings, names)
    epochs = _read_epochs(disk, directory, names, found)
    snapshots = ProducerSnapshots(disk, directory, _offsets(names, SNAPSHOT))
    producers = Producers()
    if not was_clean and found:
        recovery = _Recovery(found, epochs, snapshots, has_gaps=has_gaps, start=log_start_offset)
        is_changed |= await recovery.run(recovery_point)
    end_offset = found[-1].read_end_offset() if found else log_start_offset
    if found and end_offset < log_start_offset:
        # Only if somebody has removed files by hand. Where the log starts is a promise, so it begins anew there.
        _remove(found)
        found.clear()
        epochs.clear()
        end_offset = log_start_offset
    if not found:
        snapshots.keep_between(log_start_offset, log_start_offset)
        found.append(Segment.create(disk, directory, log_start_offset, settings, now_ms=now_ms))
        is_changed = True
    segments = Segments(found)
    for segment in found:
        segment.created_ms = now_ms
    found[-1].close()
    log_start_offset = max(log_start_offset, found[0].base_offset)
    epochs.truncate_end(end_offset)
    epochs.truncate_start(log_start_offset)
    snapshots.remove_strays(segments.base_offsets)
    if was_clean and not snapshots.offsets:
        # No snapshot after a clean shutdown means that there was no producer to remember.
        producers.clear()
    else:
        rebuild(producers, snapshots, segments, start=log_start_offset, end=end_offset)
    point = end_offset if was_clean else min(recovery_point, end_offset)
    return Loaded(segments, epochs, producers, snapshots, log_start_offset, end_offset, point, is_changed)


def _offsets(names: list[str], suffix: str) -> list[int]:
    """The offsets in the names that end so; a name that is no offset is not ours and stays."""
    return [
        int(name[:OFFSET_DIGITS])
        for name in names
        if name.endswith(suffix) and len(name) == OFFSET_DIGITS + len(suffix) and name[:OFFSET_DIGITS].isdigit()
    ]


def _segments_of(disk: Disk, directory: str, settings: TopicSettings, names: list[str]) -> list[Segment]:
    bases = _offsets(names, LOG)
    known = set(bases)
    for suffix in SUFFIXES[1:]:
        for offset in _offsets(names, suffix):
            if offset not in known:
                disk.remove(f"{directory}/{file_name(offset, suffix)}")
    return [
        Segment(disk, directory, base, settings, size_bytes=disk.size_bytes(f"{directory}/{file_name(base, LOG)}"))
        for base in bases
    ]


def _read_epochs(disk: Disk, directory: str, names: list[str], segments: list[Segment]) -> LeaderEpochs:
    """The history of epochs as the file has it or, if there is no sound file, as the batches tell it."""
    if LEADER_EPOCH_FILE in names:
        content = disk.read_all(f"{directory}/{LEADER_EPOCH_FILE}", size_bytes_max=CHECKPOINT_BYTES_MAX)
        try:
            return LeaderEpochs.decode(content)
        except CorruptCheckpoint:
            pass
    epochs = LeaderEpochs()
    for segment in segments:
        try:
            for _, header in segment.headers():
                if header.leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptBatch:
            break
        finally:
            segment.close()
    return epochs


def _finish_swaps(disk: Disk, directory: str, names: list[str]) -> bool:
    """Remove what was to be deleted or not yet cleaned, and finish a swap of segments that had begun."""
    names = [
        name for name in names if name[:OFFSET_DIGITS].isdigit() and name[OFFSET_DIGITS : OFFSET_DIGITS + 1] == "."
    ]
    cleaned = [int(name[:OFFSET_DIGITS]) for name in names if name.endswith(CLEANED)]
    swaps = []
    is_changed = False
    for name in names:
        # A swap above the first unfinished segment belongs to a split that was not completed.
        is_void_swap = name.endswith(SWAP) and bool(cleaned) and int(name[:OFFSET_DIGITS]) >= min(cleaned)
        if name.endswith((DELETED, CLEANED)) or is_void_swap:
            disk.remove(f"{directory}/{name}")
            is_changed = True
        elif name.endswith(SWAP):
            swaps.append(name)
    for name in swaps:
        if name.endswith(LOG + SWAP):
            _remove_replaced(disk, directory, name, names)
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")
    return is_changed or bool(swaps)


def _remove_replaced(disk: Disk, directory: str, swap: str, names: list[str]) -> None:
    """The segments that a swapped-in one covers are still there: it was made from them."""
    base, end = int(swap[:OFFSET_DIGITS]), int(swap[:OFFSET_DIGITS])
    content = disk.open(f"{directory}/{swap}")
    try:
        position = 0
        while content.size_bytes - position >= HEADER_BYTES:
            header = read_header(content.read(position, HEADER_BYTES))
            end, position = header.next_offset, position + header.size_bytes
    finally:
        content.close()
    for suffix in SUFFIXES:
        for offset in _offsets(names, suffix):
            if base <= offset < end:
                disk.remove(f"{directory}/{file_name(offset, suffix)}")


def _remove(segments: list[Segment]) -> None:
    for segment in segments:
        segment.close()
        segment.remove()


class _Recovery:
    """The scan of one log after a crash."""

    def __init__(
        self,
        segments: list[Segment],
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
        *,
        has_gaps: bool,
        start: int,
    ) -> None:
        self._segments = segments
        self._epochs = epochs
        self._snapshots = snapshots
        self._has_gaps = has_gaps
        self._start = start
        self._producers = Producers()
        self._latest_epoch = -1

    async def run(self, recovery_point: int) -> bool:
        """Check the segments from the recovery point on; drop everything after the first fault."""
        segments = self._segments
        first = Segments(segments).floor_index(recovery_point)
        end = segments[first].base_offset
        # What the scan finds of epochs and producers above this point is newer than what the files can know.
        self._epochs.truncate_end(end)
        rebuild(self._producers, self._snapshots, Segments(segments[: first + 1]), start=self._start, end=end)
        for index in range(first, len(segments)):
            segment = segments[index]
            if index > first and not self._follows(end, segment):
                _remove(segments[index:])
                del segments[index:]
                return True
            end, is_cut = await self._check(segment)
            if is_cut:
                _remove(segments[index + 1 :])
                del segments[index + 1 :]
                return True
        return False

    def _follows(self, end: int, segment: Segment) -> bool:
        """Whether a segment can come next: a gap is only right where compaction leaves gaps, an overlap never is."""
        if self._has_gaps:
            return segment.base_offset >= end
        return segment.base_offset == end

    async def _check(self, segment: Segment) -> tuple[int, bool]:
        """Read one segment, make its indexes anew, cut it before the first fault: (where it ends, was it cut)."""
        segment.reset_indexes()
        segment.reset_aborted()
        self._snapshots.take(self._producers.by_id.values(), segment.base_offset)
        position, end_offset = 0, segment.base_offset
        try:
            while position < segment.size_bytes:
                at = 0
                data = self._read_piece(segment, position)
                while at < len(data):
                    header = self._checked_header(data, at, segment, end_offset)
                    if header is None:
                        break
                    self._take(segment, data, at, position + at, header)
                    at += header.size_bytes
                    end_offset = header.next_offset
                position += at
                await asyncio.sleep(0)
        except CorruptBatch:
            position += at
        is_cut = position < segment.size_bytes
        if is_cut:
            segment.opened().truncate(position)
            segment.size_bytes = position
        segment.write_indexes(is_closing=True)
        segment.close()
        return end_offset, is_cut

    def _read_piece(self, segment: Segment, position: int) -> bytes:
        """A piece that holds at least the whole batch it begins with, if the file does."""
        header = read_header(segment.read_batch(position, HEADER_BYTES))
        return segment.read_batch(position, max(REBUILD_BYTES, min(header.size_bytes, segment.size_bytes - position)))

    def _checked_header(self, data: bytes, at: int, segment: Segment, end_offset: int) -> BatchHeader | None:
        """The batch, if it is whole and right; None if this piece ends within it."""
        if len(data) - at < HEADER_BYTES and at:
            return None
        header = read_header(data, at)
        if at + header.size_bytes > len(data) and at:
            return None
        if not crc_matches(data, at, header):
            raise CorruptBatch("the batch is torn")
        if header.base_offset < end_offset or header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptBatch(f"offset {header.base_offset} does not follow {end_offset}")
        if 0 <= header.leader_epoch < self._latest_epoch:
            # Batches of an older leader behind those of a newer one were cut off once and have come back.
            raise CorruptBatch(f"epoch {header.leader_epoch} does not follow {self._latest_epoch}")
        return header

    def _take(self, segment: Segment, data: bytes, at: int, position: int, header: BatchHeader) -> None:
        segment.note_batch(position, header.size_bytes, header.base_offset, header.last_offset, time_of(header))
        self._latest_epoch = max(self._latest_epoch, header.leader_epoch)
        if header.leader_epoch > self._epochs.latest_epoch:
            self._epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            take_over(self._producers, header, marker_of(data, at, header), header.base_offset, segment)
