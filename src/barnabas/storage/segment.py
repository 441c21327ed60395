"""One file of batches with its indexes: append at the end, find an offset, cut the end off.

A segment knows nothing of producers, epochs or policies, and it never decides when it is full: the log does. Files and
indexes of all but the active segment are opened when they are first needed and let go of again (``open_segments``).
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import Final, Self

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import NO_OFFSET, NO_TIMESTAMP
from barnabas.storage.batch_file import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, BatchFile
from barnabas.storage.index import (
    OFFSET_ENTRY_BYTES,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY_BYTES,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
)
from barnabas.storage.index_files import empty_file, read_last, read_whole, write_entries
from barnabas.storage.settings import TopicSettings
from barnabas.storage.transactions import AbortedRange, decode_aborted, encode_aborted
from barnabas.wire.batch import HEADER_BYTES, BatchHeader, read_header
from barnabas.world.disk import Buffer, Disk, DiskFull, File

ABORTED_BYTES_MAX: Final = 256 * 1024 * 1024

_OFFSET_ENTRY: Final = Struct(">ii")


def time_of(header: BatchHeader) -> int:
    """The time under which a batch can be found: compaction may have left no record in it that has any."""
    return header.max_timestamp if header.record_count else NO_TIMESTAMP


class Segment(BatchFile):
    __slots__ = (
        "_aborted",
        "_aborted_unwritten",
        "_first_timestamp",
        "_is_rebuilt",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_time_index",
        "bytes_since_index",
        "created_ms",
        "roll_jitter_ms",
        "settings",
        "tail_offset",
        "tail_position",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, settings: TopicSettings, *, size_bytes: int
    ) -> None:
        super().__init__(disk, directory, base_offset, size_bytes=size_bytes)
        self.settings = settings
        self.created_ms = 0
        self.roll_jitter_ms = 0
        # Where the last batch starts that was appended, so that readers at the end need no index.
        self.tail_offset = NO_OFFSET
        self.tail_position = 0
        self.bytes_since_index = 0
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._aborted: list[AbortedRange] | None = None
        self._aborted_unwritten = 0  # of those at the end
        self._is_rebuilt = False

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int, settings: TopicSettings, *, now_ms: int) -> Self:
        """A new, empty segment; whatever had its name is cut to nothing."""
        segment = cls(disk, directory, base_offset, settings, size_bytes=0)
        disk.remove(segment.path(TRANSACTION_INDEX))
        # The indexes come first: should there be no room for all, recovery removes those that have no log.
        for suffix in (INDEX, TIME_INDEX):
            empty_file(disk, segment.path(suffix)).close()
        segment.file = empty_file(disk, segment.path(LOG))
        segment.created_ms = now_ms
        segment.reset_indexes()
        return segment

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, batch: Buffer, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end."""
        position = self.size_bytes
        size_bytes = len(batch)
        (self.file or self.opened()).append(batch)
        self.size_bytes = position + size_bytes
        self.note_batch(position, size_bytes, base_offset, last_offset, max_timestamp)

    def append_group(self, batches: Buffer, headers: list[BatchHeader]) -> None:
        """Write batches that lie one after the other, in one go."""
        position = self.size_bytes
        self.opened().append(batches)
        self.size_bytes = position + len(batches)
        for header in headers:
            size_bytes = header.size_bytes
            self.note_batch(position, size_bytes, header.base_offset, header.last_offset, time_of(header))
            position += size_bytes

    def note_batch(
        self, position: int, size_bytes: int, base_offset: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Take a batch that lies at the end of the file into the indexes."""
        if position == 0:
            self._first_timestamp = max_timestamp
        self.tail_offset = base_offset
        self.tail_position = position
        if max_timestamp > (self._max_timestamp if self._max_timestamp is not None else self.max_timestamp):
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_index > self.settings.index_interval_bytes:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.time_index.append(self.max_timestamp, self._offset_of_max_timestamp - self.base_offset)
            self.bytes_since_index = 0
        self.bytes_since_index += size_bytes

    def must_roll(self, size_bytes: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of this size and these marks belongs into the next segment."""
        if self.size_bytes > self.settings.segment_bytes - size_bytes:
            return True
        if self.size_bytes:
            first_timestamp = self._first_timestamp
            if first_timestamp is None:
                first_timestamp = self._load_first_timestamp()
            waited_ms = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self.created_ms
            if waited_ms > self.settings.segment_ms - self.roll_jitter_ms:
                return True
            # What must be compacted by then must not be in the active segment any more.
            if waited_ms > self.settings.max_compaction_lag_ms and self.settings.is_compacted:
                return True
        # The indexes only grow when an entry is due, so only then can they be in the way.
        return last_offset - self.base_offset > RELATIVE_OFFSET_MAX or (
            self.bytes_since_index > self.settings.index_interval_bytes
            and (self.offset_index.is_full or self.time_index.is_full)
        )

    def add_aborted(self, aborted: AbortedRange) -> None:
        """Note an aborted transaction. The file is written at once: it is small, rare and nothing can check it."""
        self.aborted.append(aborted)
        self._aborted_unwritten += 1
        try:
            self._write_aborted()
        except DiskFull:
            return  # it follows with the other indexes, before recovery may rely on it

    def _write_aborted(self) -> None:
        file = self._disk.open(self.path(TRANSACTION_INDEX), create=True)
        try:
            file.append(encode_aborted(self.aborted[len(self.aborted) - self._aborted_unwritten :]))
        finally:
            file.close()
        self._aborted_unwritten = 0

    def truncate(self, offset: int) -> None:
        """Cut off the batches that end at or above an offset, here and in the indexes."""
        found = self.locate(offset)
        relative_offset = offset - self.base_offset
        self.offset_index.truncate(relative_offset)
        self.time_index.truncate(relative_offset)
        if self.aborted and self.aborted[-1].last_offset >= offset:
            kept = [aborted for aborted in self.aborted if aborted.last_offset < offset]
            self.reset_aborted()
            for aborted in kept:
                self.add_aborted(aborted)
        if found is not None:
            self.opened().truncate(found[0])
            self.size_bytes = found[0]
            self.tail_offset = NO_OFFSET
            if self.size_bytes == 0:
                self.reset_indexes()
            else:
                self._read_largest_timestamp()
                self.bytes_since_index = 0
        with suppress(DiskFull):
            self.write_indexes()

    def _read_largest_timestamp(self) -> None:
        """After a cut: the last entry of the time index, unless a batch behind it is younger."""
        self._max_timestamp = None
        start = self.offset_index.floor(self.time_index.last_offset)[1]
        for _, header in self.headers(start):
            if time_of(header) > self.max_timestamp:
                self._max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.last_offset

    # --- finding --------------------------------------------------------------------------------------------------

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch that ends at or above an offset; None if all end below it."""
        if offset == self.tail_offset:
            return self.tail_position, self.size_bytes - self.tail_position
        entry_offset, position = self.offset_index.floor(offset - self.base_offset)
        try:
            return self.scan(offset, position, first_offset_max=self.base_offset + entry_offset)
        except CorruptBatch:
            if position == 0 or self._is_rebuilt:
                raise
        # It may be the index that is wrong: where it pointed lies no batch, or another one than it said.
        kept = self._offset_index, self._time_index
        try:
            self.rebuild_indexes()
        except CorruptBatch:
            # It is the log: what lies behind the damage is found by the indexes as they were.
            self._offset_index, self._time_index = kept
            self._max_timestamp = None
            raise
        entry_offset, position = self.offset_index.floor(offset - self.base_offset)
        return self.scan(offset, position, first_offset_max=self.base_offset + entry_offset)

    def read_end_offset(self) -> int:
        """The offset after the last batch, found from the last index entry: for a segment just opened."""
        end_offset = self.base_offset
        if self.size_bytes:
            offset, position = self._peek_index()
            if position and not self.is_sound(position, self.base_offset + offset):
                self.rebuild_indexes()
                position = 0
            for _, header in self.headers(position):
                end_offset = header.next_offset
        return end_offset

    def _peek_index(self) -> tuple[int, int]:
        """The last entry of the offset index, without reading the rest; (0, 0) if there is none."""
        path = self.path(INDEX)
        if self._offset_index is not None or not self._disk.exists(path):
            return self.offset_index.floor(RELATIVE_OFFSET_MAX)
        file = self._disk.open(path)
        try:
            last = read_last(file, OFFSET_ENTRY_BYTES)
        finally:
            file.close()
        if len(last) < OFFSET_ENTRY_BYTES:
            return 0, 0
        offset, position = _OFFSET_ENTRY.unpack(last)
        return offset, max(position, 0)

    # --- time -----------------------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp in the segment, or −1."""
        if self._max_timestamp is None:
            if self._time_index is None and self._disk.exists(self.path(TIME_INDEX)):
                index = self._peek_time_index()
            else:
                index = self.time_index
            self._max_timestamp = index.last_timestamp
            self._offset_of_max_timestamp = self.base_offset + index.last_offset
        return self._max_timestamp

    def _peek_time_index(self) -> TimeIndex:
        """Only the last entry of the file: retention asks every segment for it, and that must cost little."""
        file = self._disk.open(self.path(TIME_INDEX))
        try:
            last = read_last(file, TIME_ENTRY_BYTES)
            if file.size_bytes % TIME_ENTRY_BYTES:
                raise CorruptIndex(f"{file.path} does not hold whole entries")
            return TimeIndex.decode(last, self.settings.segment_index_bytes)
        except CorruptIndex:
            return self.time_index
        finally:
            file.close()

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset in the batch with the largest timestamp."""
        return self._offset_of_max_timestamp if self.max_timestamp >= 0 else self.base_offset

    def largest_timestamp(self) -> int:
        """For retention: the records' own time or, if they have none, the file's."""
        return self.max_timestamp if self.max_timestamp >= 0 else self._disk.modified_ms(self.path(LOG))

    def first_timestamp(self) -> int:
        """The time of the first batch, or −1."""
        if self._first_timestamp is None and self.size_bytes:
            return self._load_first_timestamp()
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    def _load_first_timestamp(self) -> int:
        self._first_timestamp = read_header(self.opened().read(0, HEADER_BYTES)).max_timestamp
        return self._first_timestamp

    # --- indexes --------------------------------------------------------------------------------------------------

    @property
    def is_touched(self) -> bool:
        """Whether memory may know more than the index files: an index is loaded, or a batch was appended."""
        return self._offset_index is not None or self._time_index is not None or self.tail_offset >= 0

    @property
    def has_unwritten_entries(self) -> bool:
        """Whether an index in memory has entries that its file has not."""
        return any(index is not None and index.has_unwritten for index in (self._offset_index, self._time_index))

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            try:
                size_bytes_max = self.settings.segment_index_bytes
                data = read_whole(self._disk, self.path(INDEX), size_bytes_max=max(size_bytes_max, self.size_bytes))
                self._offset_index = OffsetIndex.decode(data, size_bytes_max, log_size_bytes=self.size_bytes)
            except CorruptIndex:
                self.rebuild_indexes()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            try:
                size_bytes_max = self.settings.segment_index_bytes
                data = read_whole(
                    self._disk, self.path(TIME_INDEX), size_bytes_max=max(size_bytes_max, self.size_bytes)
                )
                self._time_index = TimeIndex.decode(data, size_bytes_max)
                self._check_time_index(self._time_index)
            except CorruptIndex:
                self.rebuild_indexes()
        assert self._time_index is not None
        return self._time_index

    def _check_time_index(self, index: TimeIndex) -> None:
        """Whether the last entry names a batch that has its timestamp."""
        found = self.locate(self.base_offset + index.last_offset) if index.count else None
        if index.count and found is None:
            raise CorruptIndex("the time index names an offset that the segment does not hold")
        if found is not None:
            header = read_header(self.opened().read(found[0], HEADER_BYTES))
            if header.max_timestamp != index.last_timestamp:
                raise CorruptIndex("the time index names a time that its batch does not have")

    @property
    def aborted(self) -> list[AbortedRange]:
        if self._aborted is None:
            path = self.path(TRANSACTION_INDEX)
            data = self._disk.read_all(path, size_bytes_max=ABORTED_BYTES_MAX) if self._disk.exists(path) else b""
            self._aborted = decode_aborted(data, base_offset=self.base_offset)
        return self._aborted

    def reset_indexes(self) -> None:
        """Begin both indexes anew, as of an empty segment; the files follow when they are next written."""
        self._offset_index = OffsetIndex(self.settings.segment_index_bytes)
        self._time_index = TimeIndex(self.settings.segment_index_bytes)
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._first_timestamp = None
        self.bytes_since_index = 0
        self.tail_offset = NO_OFFSET

    def reset_aborted(self) -> None:
        self._aborted = []
        self._aborted_unwritten = 0
        self._disk.remove(self.path(TRANSACTION_INDEX))

    def rebuild_indexes(self) -> None:
        """Make both indexes from the batches' headers, which are what counts."""
        self._is_rebuilt = True  # from then on whatever does not fit is the log's fault
        self.reset_indexes()
        for position, header in self.headers():
            if not 0 <= header.last_offset - self.base_offset <= RELATIVE_OFFSET_MAX:
                raise CorruptBatch(f"{self.path(LOG)} has a batch of offset {header.last_offset} at {position}")
            self.note_batch(position, header.size_bytes, header.base_offset, header.last_offset, time_of(header))

    def write_indexes(self, *, is_closing: bool = False) -> None:
        """Bring the index files up to date; a segment that takes no more batches ends its time index first."""
        if self._aborted_unwritten:
            self._write_aborted()
        if not self.is_touched:
            return
        offset_index, time_index = self.offset_index, self.time_index
        if is_closing:
            time_index.append(self.max_timestamp, self._offset_of_max_timestamp - self.base_offset)
        write_entries(self._disk, self.path(INDEX), offset_index, OFFSET_ENTRY_BYTES)
        write_entries(self._disk, self.path(TIME_INDEX), time_index, TIME_ENTRY_BYTES)

    # --- the end --------------------------------------------------------------------------------------------------

    def let_go(self) -> File | None:
        """Forget file and indexes until they are needed again; whoever asks closes the file."""
        file, self.file = self.file, None
        self._offset_index = self._time_index = None
        self._aborted = None
        return file

    def close(self) -> None:
        """Close the file; the segment opens it again if it is read again."""
        file = self.let_go()
        if file is not None:
            file.close()
