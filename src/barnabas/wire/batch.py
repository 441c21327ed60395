"""The 61-byte header of a record batch (magic 2) and the few bytes of it that a broker changes in place.

The records behind the header are not looked at here, see :mod:`barnabas.wire.records`. Everything that moves batches
calls this on its hot path: validation, the log, recovery, followers and clients.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from barnabas.model.errors import CorruptBatch
from barnabas.wire.compression import Buffer, Codec

T = TypeVar("T")

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61
LENGTH_OVERHEAD: Final = 12  # base offset and length themselves are not counted by the length
LENGTH_MIN: Final = HEADER_BYTES - LENGTH_OVERHEAD
MAGIC: Final = 2
CRC_POSITION: Final = 17
CHECKED_FROM: Final = 21  # the checksum covers attributes to end: offset and epoch may change without it

CODEC_MASK: Final = 0x07
APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

SEQUENCES: Final = 1 << 31  # sequence numbers wrap to zero after the largest int32

_OFFSET: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_LENGTH_POSITION: Final = 8
_EPOCH_POSITION: Final = 12

# Bound once: this is the innermost of the broker's paths.
unpack_header: Final = HEADER.unpack_from
pack_place: Final = struct.Struct(">qii").pack_into  # base offset, length (as it is), leader epoch: the head of a batch

assert HEADER.size == HEADER_BYTES


class _NewTuple(Protocol):
    def __call__(self, kind: type[T], values: tuple[Any, ...], /) -> T: ...


# As a named tuple's own constructor, without the call of a Python function.
new_tuple: Final = cast(_NewTuple, tuple.__new__)


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        # Compaction may have removed the last records, so this comes from the header, never from counting.
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) % SEQUENCES

    @property
    def codec(self) -> Codec:
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise CorruptBatch(f"there is no codec {number}")
        return _CODECS[number]

    @property
    def uses_append_time(self) -> bool:
        return self.attributes & APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON != 0


_CODECS: Final = tuple(Codec)


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at ``position``; that the batch's body is there too is for the caller to see to."""
    assert position >= 0
    try:
        header = new_tuple(BatchHeader, unpack_header(buffer, position))
    except struct.error as error:
        raise CorruptBatch(f"{len(buffer) - position} bytes are no batch header") from error
    if header[3] == MAGIC and header[1] >= LENGTH_MIN and header[12] >= 0 and header[6] >= 0:
        return header
    if header[3] != MAGIC:
        raise CorruptBatch(f"the batch has magic {header[3]}, not {MAGIC}")
    if header[1] < LENGTH_MIN:
        raise CorruptBatch(f"a batch cannot have length {header[1]}")
    raise CorruptBatch(f"a batch cannot have {header[12]} records up to offset delta {header[6]}")


def iterate(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Each complete batch with its position; a batch cut off by the end of the buffer ends it quietly."""
    position, end = 0, len(buffer)
    while end - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        following = position + header[1] + LENGTH_OVERHEAD
        if following > end:
            return
        yield position, header
        position = following


def _first_crc32c(data: Buffer) -> int:
    """With the first checksum its package is imported: it looks up its own version, and takes longer than we do."""
    global _crc32c
    from crc32c import crc32c

    _crc32c = crc32c
    return crc32c(data)


_crc32c: Callable[[Buffer], int] = _first_crc32c


def crc_of(buffer: Buffer, position: int, size_bytes: int) -> int:
    return _crc32c(memoryview(buffer)[position + CHECKED_FROM : position + size_bytes])


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    end = position + header[1] + LENGTH_OVERHEAD
    if end > len(buffer):
        return False
    return _crc32c(memoryview(buffer)[position + CHECKED_FROM : end]) == header[4]


def assign(buffer: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch its place in the log; the checksum does not cover what changes."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + _EPOCH_POSITION, leader_epoch)


def seal(buffer: bytearray | memoryview, position: int) -> None:
    """Recomputes the checksum after attributes, timestamps or records have changed."""
    size_bytes = _INT32.unpack_from(buffer, position + _LENGTH_POSITION)[0] + LENGTH_OVERHEAD
    _CRC.pack_into(buffer, position + CRC_POSITION, crc_of(buffer, position, size_bytes))
