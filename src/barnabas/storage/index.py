"""The offset index and the time index of a segment: where in the file an offset lies, and which offset a time has.

Entries live in memory in native form and go to Kafka's files (big-endian, no checksum) when the segment asks for it.
Neither index is trusted: a segment checks what an entry points at and rebuilds the index if it is wrong.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from barnabas.model.ids import NO_TIMESTAMP
from barnabas.world.disk import Buffer

OFFSET_ENTRY_BYTES: Final = 8  # int32 offset relative to the base, int32 position
TIME_ENTRY_BYTES: Final = 12  # int64 timestamp, int32 relative offset
RELATIVE_OFFSET_MAX: Final = 2**31 - 1

_TIME_ENTRY: Final = struct.Struct(">qi")
_SWAP: Final = sys.byteorder == "little"

assert array("i").itemsize == 4
assert array("q").itemsize == 8


class CorruptIndex(Exception):
    """An index that cannot be what its segment needs; it is rebuilt from the log, never reported further."""


class OffsetIndex:
    """Sorted pairs of a batch's last offset (relative to the base) and the position where the batch starts."""

    __slots__ = ("count_max", "offsets", "positions", "written_count")

    def __init__(self, size_bytes_max: int) -> None:
        self.offsets = array("i")
        self.positions = array("i")
        self.written_count = 0  # how many entries the file holds already
        self.count_max = size_bytes_max // OFFSET_ENTRY_BYTES

    @classmethod
    def decode(cls, data: Buffer, size_bytes_max: int, *, log_size_bytes: int) -> OffsetIndex:
        """The index a file holds; CorruptIndex if its outline cannot be right."""
        if len(data) % OFFSET_ENTRY_BYTES:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries")
        index = cls(size_bytes_max)
        entries = array("i")
        entries.frombytes(data)
        if _SWAP:
            entries.byteswap()
        index.offsets, index.positions = entries[0::2], entries[1::2]
        index.written_count = len(index.offsets)
        if index.offsets and not (
            0 <= index.offsets[0] <= index.offsets[-1] and 0 <= index.positions[-1] < max(log_size_bytes, 1)
        ):
            raise CorruptIndex("the last entry lies outside of the log")
        return index

    @property
    def count(self) -> int:
        return len(self.offsets)

    @property
    def has_unwritten(self) -> bool:
        return self.written_count < len(self.offsets)

    @property
    def is_full(self) -> bool:
        return len(self.offsets) >= self.count_max

    def append(self, relative_offset: int, position: int) -> None:
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def floor(self, relative_offset: int) -> tuple[int, int]:
        """The entry with the largest offset not above this one: (relative offset, position), or (0, 0)."""
        slot = bisect_right(self.offsets, relative_offset) - 1
        return (self.offsets[slot], self.positions[slot]) if slot >= 0 else (0, 0)

    def above_position(self, position: int) -> int | None:
        """The relative offset of the first entry at or above a position: an offset that is not below it."""
        slot = bisect_left(self.positions, position)
        return self.offsets[slot] if slot < len(self.offsets) else None

    def truncate(self, relative_offset: int) -> None:
        """Drop the entries at or above an offset."""
        keep = bisect_left(self.offsets, relative_offset)
        del self.offsets[keep:], self.positions[keep:]
        self.written_count = min(self.written_count, keep)

    def unwritten(self) -> bytes:
        """What the file lacks, in its format; ``mark_written`` follows when it is there."""
        start = self.written_count
        entries = array("i", bytes(OFFSET_ENTRY_BYTES * (len(self.offsets) - start)))
        entries[0::2], entries[1::2] = self.offsets[start:], self.positions[start:]
        if _SWAP:
            entries.byteswap()
        return entries.tobytes()

    def mark_written(self) -> None:
        self.written_count = len(self.offsets)


class TimeIndex:
    """Rising pairs of the largest timestamp so far and the last offset of its batch."""

    __slots__ = ("count_max", "entries", "last_offset", "last_timestamp", "written_count")

    def __init__(self, size_bytes_max: int) -> None:
        self.entries = bytearray()
        self.written_count = 0
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = 0
        self.count_max = size_bytes_max // TIME_ENTRY_BYTES

    @classmethod
    def decode(cls, data: Buffer, size_bytes_max: int) -> TimeIndex:
        if len(data) % TIME_ENTRY_BYTES:
            raise CorruptIndex(f"{len(data)} bytes are not whole entries")
        index = cls(size_bytes_max)
        index.entries += data
        index.written_count = index.count
        if data:
            index._read_last()
            if index.last_timestamp < _TIME_ENTRY.unpack_from(data)[0] or index.last_offset < 0:
                raise CorruptIndex("the last entry is older than the first")
        return index

    @property
    def count(self) -> int:
        return len(self.entries) // TIME_ENTRY_BYTES

    @property
    def has_unwritten(self) -> bool:
        return self.written_count < self.count

    @property
    def is_full(self) -> bool:
        # One place stays free for the entry that closes the segment.
        return self.count >= self.count_max - 1

    def append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry unless it tells nothing new."""
        if timestamp > self.last_timestamp and relative_offset >= self.last_offset:
            self.entries += _TIME_ENTRY.pack(timestamp, relative_offset)
            self.last_timestamp, self.last_offset = timestamp, relative_offset

    def floor(self, timestamp: int) -> int:
        """The relative offset of the last entry whose timestamp is not above this one, or 0."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if _TIME_ENTRY.unpack_from(self.entries, middle * TIME_ENTRY_BYTES)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return 0
        offset: int = _TIME_ENTRY.unpack_from(self.entries, (low - 1) * TIME_ENTRY_BYTES)[1]
        return offset

    def truncate(self, relative_offset: int) -> None:
        """Drop the entries at or above an offset."""
        keep = self.count
        while keep and _TIME_ENTRY.unpack_from(self.entries, (keep - 1) * TIME_ENTRY_BYTES)[1] >= relative_offset:
            keep -= 1
        del self.entries[keep * TIME_ENTRY_BYTES :]
        self.written_count = min(self.written_count, keep)
        self._read_last()

    def unwritten(self) -> bytes:
        return bytes(self.entries[self.written_count * TIME_ENTRY_BYTES :])

    def mark_written(self) -> None:
        self.written_count = self.count

    def _read_last(self) -> None:
        if self.entries:
            self.last_timestamp, self.last_offset = _TIME_ENTRY.unpack_from(self.entries, len(self.entries) - 12)
        else:
            self.last_timestamp, self.last_offset = NO_TIMESTAMP, 0
