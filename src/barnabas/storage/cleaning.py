"""One round of cleaning over one log: note the keys of the dirty part, then write group after group of segments anew.

What stays is decided in ``batch_filter``; here files are read and written, in slices whose work is done by workers, so
that the loop is never held up. A round gives up as soon as its log is cut, closed or no longer compacted, and loses
nothing but its work. The cleaner runs one at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from barnabas.model.errors import CorruptBatch
from barnabas.storage.batch_file import INDEX, LOG, TIME_INDEX
from barnabas.storage.batch_filter import BatchFilter, Kept, KeyCollector, Noted, last_batches
from barnabas.storage.cleaner_status import Round
from barnabas.storage.compaction import SegmentSize, groups
from barnabas.storage.log import PartitionLog
from barnabas.storage.offset_map import SEED_BYTES, OffsetMap
from barnabas.storage.segment import Segment
from barnabas.storage.swapping import CleanedSegment, is_current, replace_segments
from barnabas.storage.transactions import AbortedRange
from barnabas.wire.batch import HEADER_BYTES, read_header
from barnabas.world.disk import CHUNK_BYTES_MAX, File, PathGone
from barnabas.world.world import World

SEGMENT_BYTES_MAX: Final = 2**31 - 1  # positions in an index have 31 bits

S = TypeVar("S", Noted, Kept)


class CleaningAborted(Exception):
    """The log has changed under the cleaner, or the cleaner stops: this round is void."""


class Uncleanable(Exception):
    """A log that cannot be cleaned, with the reason."""


class Cleaning:
    def __init__(
        self,
        world: World,
        target: PartitionLog,
        round_: Round,
        *,
        is_stopping: Callable[[], bool],
        throttle: Callable[[int], Awaitable[None]],
    ) -> None:
        self._world = world
        self._log = target
        self._round = round_
        self._is_stopping = is_stopping
        self._throttle = throttle
        self._cut_count = target.cut_count

    async def run(self, dedupe_buffer_bytes: int) -> None:
        # What is cleaned is on the device before it is read, so recovery never looks for a fault in what was swapped.
        await self._log.flush_closed()
        offsets = OffsetMap(size_bytes_max=dedupe_buffer_bytes, seed=self._world.entropy.token(SEED_BYTES))
        try:
            aborted = self._aborted()
            await self._note_keys(offsets, aborted)
            await self._rewrite(offsets, aborted)
        except PathGone:
            self._check()  # the log was deleted, and so its directory renamed; otherwise a file was removed by hand
            raise
        finally:
            await self._world.workers.run(offsets.close)
        self._check()
        self._log.cleaned_offset = self._round.end_offset

    def _check(self) -> None:
        """Whether this may go on."""
        target = self._log
        is_compacted = target.settings.is_compacted
        if self._is_stopping() or target.is_over or target.cut_count != self._cut_count or not is_compacted:
            raise CleaningAborted

    def _aborted(self) -> list[AbortedRange]:
        """Every aborted transaction that the log knows of: below the bound all of them have ended."""
        found: list[AbortedRange] = []
        for segment in self._log.segments.from_offset(self._log.log_start_offset):
            found += segment.aborted
        return found

    async def _note_keys(self, offsets: OffsetMap, aborted: list[AbortedRange]) -> None:
        round_ = self._round
        start, bound = round_.first_dirty_offset, round_.end_offset
        collector = KeyCollector(offsets, aborted, start_offset=start)
        segments = [each for each in self._log.segments.from_offset(start) if each.base_offset < bound]
        is_full = False

        def take(noted: Noted) -> int:
            nonlocal is_full
            is_full = noted.is_full
            return 0

        for index, segment in enumerate(segments):
            position = 0
            if start > segment.base_offset:
                located = segment.locate(start)
                self._log.open_segments.used(segment)
                position = segment.size_bytes if located is None else located[0]
            await self._walk(segment, position, collector.note, take, until=lambda: is_full)
            if is_full:
                break
            # What was there between the last batch and the next segment has gone in an earlier round.
            offsets.latest_offset = (segments[index + 1].base_offset if index + 1 < len(segments) else bound) - 1
        if offsets.latest_offset < start:
            raise Uncleanable(f"the keys of the batch at offset {start} do not fit into log.cleaner.dedupe.buffer.size")
        round_.end_offset = offsets.latest_offset + 1
        round_.keys, round_.map_bytes = offsets.count, offsets.size_bytes

    async def _rewrite(self, offsets: OffsetMap, aborted: list[AbortedRange]) -> None:
        target, round_ = self._log, self._round
        now_ms = self._world.clock.wall_ms()
        # A batch may go because its producer has written a later one: which must not be lost after it.
        last_of_producers = last_batches(target.producers.by_id.values())
        if last_of_producers:
            await target.flush()
        batch_filter = BatchFilter(
            offsets,
            aborted,
            last_of_producers,
            now_ms=now_ms,
            delete_retention_ms=target.settings.delete_retention_ms,
        )
        self._check()
        all_of_them = target.segments.from_offset(target.log_start_offset)
        segments = [each for each in all_of_them if each.base_offset < round_.end_offset]
        ends = [each.base_offset for each in all_of_them[1 : len(segments) + 1]]
        sizes = [self._size_of(segment, end) for segment, end in zip(segments, ends, strict=True)]
        for group in groups(sizes, target.settings):
            batch_filter.end_offset = ends[group[-1]]
            round_.step = f"writes the segment at offset {segments[group[0]].base_offset} anew"
            await self._rewrite_group([segments[index] for index in group], batch_filter, now_ms)

    def _size_of(self, segment: Segment, end_offset: int) -> SegmentSize:
        disk = self._world.disk
        indexes = (segment.path(suffix) for suffix in (INDEX, TIME_INDEX))
        return SegmentSize(
            segment.base_offset,
            end_offset,
            segment.size_bytes,
            *(disk.size_bytes(path) if disk.exists(path) else 0 for path in indexes),
        )

    async def _rewrite_group(self, group: list[Segment], batch_filter: BatchFilter, now_ms: int) -> None:
        target, disk = self._log, self._world.disk
        cleaned = CleanedSegment.create(disk, target.directory, group[0].base_offset, target.settings, now_ms=now_ms)
        is_changed = len(group) > 1
        is_swapped = False

        def take(kept: Kept) -> int:
            nonlocal is_changed
            is_changed |= kept.is_changed
            if cleaned.size_bytes + len(kept.records) > SEGMENT_BYTES_MAX:
                raise Uncleanable(f"the segment at offset {cleaned.base_offset} would grow beyond 2 GiB")
            if target.room is not None:
                target.room.take(len(kept.records))
            if kept.headers:
                cleaned.append_group(kept.records, kept.headers)
            for aborted in kept.aborted:
                cleaned.add_aborted(aborted)
            self._round.batches_kept += len(kept.headers)
            self._round.written_bytes += len(kept.records)
            return len(kept.records)

        try:
            for segment in group:
                await self._walk(segment, 0, batch_filter.keep, take)
            if is_changed:
                await cleaned.sync()
                self._check()
                if not is_current(target, group):
                    raise CleaningAborted
                replace_segments(target, group, cleaned)
                is_swapped = True
                await disk.sync_directory(target.directory)
        finally:
            cleaned.close()
            if not is_swapped and target.failure is None:
                await self._world.workers.run(cleaned.remove)  # it may be large

    async def _walk(
        self,
        segment: Segment,
        position: int,
        work: Callable[[bytes, int], S],
        take: Callable[[S], int],
        *,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        """Let a worker go over a segment from a position on, slice by slice, and take what it makes of each."""
        if not is_current(self._log, [segment]):
            raise CleaningAborted
        file = self._world.disk.open(segment.path(LOG))
        end = segment.size_bytes
        try:
            while position < end and not until():
                data = await _read(file, position, end)
                at = 0
                while at < len(data) and not until():
                    self._check()
                    done = await self._world.workers.run(work, data, at)
                    self._round.batches_read += done.batch_count
                    written = take(done)
                    await self._throttle(done.consumed + written)
                    if not done.consumed:
                        break
                    at += done.consumed
                if not at and not until():
                    raise CorruptBatch(f"{segment.path(LOG)} ends within a batch")
                position += at
                self._round.read_bytes += at
        finally:
            file.close()


async def _read(file: File, position: int, end: int) -> bytes:
    """A piece of a file that holds at least the whole batch it begins with, if the file does."""
    data = await _read_chunks(file, position, min(CHUNK_BYTES_MAX, end - position))
    if len(data) >= HEADER_BYTES:
        size_bytes = min(read_header(data).size_bytes, end - position)
        if size_bytes > len(data):
            data += await _read_chunks(file, position + len(data), size_bytes - len(data))
    return bytes(data)


async def _read_chunks(file: File, position: int, size_bytes: int) -> bytearray:
    data = bytearray()
    while len(data) < size_bytes:
        wanted = min(CHUNK_BYTES_MAX, size_bytes - len(data))
        view = file.view(position + len(data), wanted)
        if view is None:
            view = await file.load(position + len(data), wanted)
        if not len(view):
            break
        data += view
        file.release(view)
    return data
