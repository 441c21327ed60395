"""A file of batches, one after the other: read headers, walk along them, find the first that reaches an offset.

There is no index here and nothing is written; ``segment`` adds both. A file is opened when it is first read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.model.errors import CorruptBatch
from barnabas.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD, MAGIC, BatchHeader, read_header
from barnabas.world.disk import Disk, File

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)
DELETED: Final = ".deleted"
NUMBERS: Final = ("", ".1", ".2", ".3")  # of files that wait for their deletion under one name: more than ever do

SCAN_BYTES: Final = 8 * 1024  # a little more than lies between two index entries
REBUILD_BYTES: Final = 1024 * 1024

_LEAD: Final = Struct(">qiibIhi")  # a header up to its last offset delta
_LENGTH_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


class Renamed(NamedTuple):
    """Files that have got a name under which they wait for their deletion."""

    paths: list[str]
    older: list[str]  # those of the same names before them, which have waited long enough


class BatchFile:
    __slots__ = ("_disk", "base_offset", "directory", "file", "on_open", "size_bytes")

    def __init__(self, disk: Disk, directory: str, base_offset: int, *, size_bytes: int) -> None:
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.file: File | None = None
        self.on_open: Callable[[BatchFile], None] | None = None  # who counts the files that are open

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    def opened(self) -> File:
        if self.file is None:
            self.file = self._disk.open(self.path(LOG))
            if self.on_open is not None:
                self.on_open(self)
        return self.file

    def is_sound(self, position: int, offset: int) -> bool:
        """Whether an index entry points at a batch that its offset can belong to."""
        data = self.opened().read(position, HEADER_BYTES)
        try:
            header = read_header(data)
        except CorruptBatch:
            return False
        return self.base_offset <= header.base_offset <= offset and position + header.size_bytes <= self.size_bytes

    def scan(self, offset: int, position: int, *, first_offset_max: int) -> tuple[int, int] | None:
        """Position and size of the first batch from a position on that ends at or above an offset, or None.

        The batch at the position itself must not start above ``first_offset_max``, or something before it was missed.
        """
        file, end = self.opened(), self.size_bytes
        start = position
        unpack = _LEAD.unpack_from
        while position < end:
            data = file.read(position, SCAN_BYTES)
            at, last = 0, len(data) - HEADER_BYTES
            if last < 0:
                raise CorruptBatch(f"{self.path(LOG)} ends within a header at {position}")
            while at <= last:
                base_offset, length, _, magic, _, _, delta = unpack(data, at)
                if magic != MAGIC or length < _LENGTH_MIN:
                    raise CorruptBatch(f"{self.path(LOG)} holds no batch at {position + at}")
                if base_offset + delta >= offset:
                    if position + at == start and start and base_offset > first_offset_max:
                        raise CorruptBatch(f"{self.path(LOG)} starts at {base_offset} where an index said otherwise")
                    return position + at, length + LENGTH_OVERHEAD
                at += length + LENGTH_OVERHEAD
            position += at
        return None

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Every batch from a position on, read in large pieces."""
        file = self.opened()
        end = self.size_bytes if end is None else end
        while end - position >= HEADER_BYTES:
            data = file.read(position, min(REBUILD_BYTES, end - position))
            at = 0
            while len(data) - at >= HEADER_BYTES:
                header = read_header(data, at)
                if position + at + header.size_bytes > end:
                    return
                yield position + at, header
                at += header.size_bytes
            if at == 0:
                return
            position += at

    def batch_size(self, position: int) -> int:
        """The size of the batch that starts at a position."""
        return read_header(self.opened().read(position, HEADER_BYTES)).size_bytes

    def read_batch(self, position: int, size_bytes: int) -> bytes:
        return self.opened().read(position, size_bytes)

    def rename_deleted(self) -> Renamed:
        """Mark the files as deleted, so that a crash before they vanish does not bring them back.

        No file is replaced: the system would free all of its blocks before it came back.
        """
        paths, older = [], []
        for suffix in SUFFIXES:
            path = self.path(suffix)
            if self._disk.exists(path):
                names = [f"{path}{number}{DELETED}" for number in NUMBERS]
                taken = [name for name in names if self._disk.exists(name)]
                target = next((name for name in names if name not in taken), names[-1])
                older += taken
                self._disk.rename(path, target)
                paths.append(target)
        return Renamed(paths, older)

    def remove(self) -> None:
        """Remove the files at once."""
        for suffix in SUFFIXES:
            self._disk.remove(self.path(suffix))
