"""The four codecs of Kafka's record batches behind two functions, with the output always bounded.

What a batch looks like around its compressed records is none of this module's business. The record codec, the broker's
validation and the client's accumulator call it; the packages behind the codecs are imported on first use.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final

from barnabas.model.errors import CorruptBatch

Buffer = bytes | bytearray | memoryview

# Java's decoder accepts windows of 128 MiB. A window is reserved, not touched: its pages become real as output is
# written, so a frame that asks for the largest window and holds little costs little.
ZSTD_WINDOW_BYTES_MAX: Final = 128 << 20
# A batch is one gzip member. Concatenation is legal, but thousands of empty members are an attack on our time.
GZIP_MEMBERS_MAX: Final = 1024
# What a member leaves over is copied, so the input is fed in pieces.
GZIP_PIECE_BYTES: Final = 64 << 10
# The first guess at the output of a stream that does not state its size; each later one is as large as all before.
STREAM_PIECE_BYTES: Final = 64 << 10

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES: Final = 32 << 10

LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
LZ4_INDEPENDENT_BLOCKS: Final = 0x20
LZ4_DEFAULT_LEVEL: Final = 9  # Kafka's name for the fast compressor; every other level is the high-compression one
LZ4_HIGH_LEVEL_MIN: Final = 3
ZSTD_DEFAULT_LEVEL: Final = 3
ZSTD_FRAME_HEADER_BYTES_MAX: Final = 18
ZSTD_SKIPPABLE_HEADER_BYTES: Final = 8
ZSTD_SKIPPABLE_MAGIC: Final = b"\x2a\x4d\x18"  # after a first byte of 0x50 to 0x5f
ZSTD_CHECKSUM_FLAG: Final = 0x04
ZSTD_REPEATED_BYTE: Final = 1


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """``data`` as Kafka's clients expect it of this codec; ``level`` as in Kafka's ``compression.<codec>.level``."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, *, size_bytes_max: int) -> bytes:
    """The plain bytes, or :class:`CorruptBatch` if they are garbage or more than ``size_bytes_max``."""
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise CorruptBatch(f"there is no codec {codec}")
    return decompressor(data, size_bytes_max)


class TooLarge(CorruptBatch):
    """The plain bytes are more than the caller allows."""


def _too_large(codec: str, size_bytes_max: int) -> TooLarge:
    return TooLarge(f"the {codec} data holds more than the {size_bytes_max} bytes allowed")


def _plain(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _plain_bounded(data: Buffer, size_bytes_max: int) -> bytes:
    if len(data) > size_bytes_max:
        raise _too_large("plain", size_bytes_max)
    return bytes(data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def _gunzip(data: Buffer, size_bytes_max: int) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = []
    size = position = members = 0
    while position < len(view) or not members:
        members += 1
        if members > GZIP_MEMBERS_MAX:
            raise CorruptBatch(f"the gzip data has more than {GZIP_MEMBERS_MAX} members")
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        while not member.eof:
            piece = view[position : position + GZIP_PIECE_BYTES]
            if not piece:
                raise CorruptBatch("the gzip data ends too early")
            try:
                plain = member.decompress(piece, size_bytes_max - size + 1)
            except zlib.error as error:
                raise CorruptBatch(f"the gzip data is garbage: {error}") from error
            size += len(plain)
            if size > size_bytes_max:
                raise _too_large("gzip", size_bytes_max)
            parts.append(plain)
            position += len(piece) - len(member.unused_data)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _unsnappy(data: Buffer, size_bytes_max: int) -> bytes:
    """Java and its like frame snappy as xerial's stream; librdkafka and others send one raw block."""
    import cramjam

    view = memoryview(data)
    blocks = _xerial_blocks(view) if bytes(view[:8]) == XERIAL_MAGIC else [view]
    try:
        # Every block states its plain size: all of them are added up before a byte is allocated.
        sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
        size = sum(sizes)
        if size > size_bytes_max:
            raise _too_large("snappy", size_bytes_max)
        plain = bytearray(size)
        position = 0
        with memoryview(plain) as target:
            for block, block_size in zip(blocks, sizes, strict=True):
                if cramjam.snappy.decompress_raw_into(block, target[position : position + block_size]) != block_size:
                    raise CorruptBatch("a snappy block is not as long as it says")
                position += block_size
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"the snappy data is garbage: {error}") from error
    return bytes(plain)


def _xerial_blocks(view: memoryview) -> list[memoryview]:
    blocks: list[memoryview] = []
    position = 0
    while position < len(view):
        # Streams may be concatenated: a header may stand wherever a block may.
        if bytes(view[position : position + 8]) == XERIAL_MAGIC:
            position += len(XERIAL_HEADER)
            if position > len(view):
                raise CorruptBatch("the snappy stream's header is cut off")
            continue
        size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if not 0 < size <= len(view) - position:
            raise CorruptBatch("a snappy block reaches beyond the stream")
        blocks.append(view[position : position + size])
        position += size
    return blocks


def _lz4(data: Buffer, level: int | None) -> bytes:
    from lz4 import frame

    effort = 0 if level is None or level == LZ4_DEFAULT_LEVEL else max(level, LZ4_HIGH_LEVEL_MIN)
    # Java's reader knows independent blocks only.
    packed: bytes = frame.compress(
        data, compression_level=effort, block_size=frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return packed


def _unlz4(data: Buffer, size_bytes_max: int) -> bytes:
    from lz4 import frame

    if len(data) < 7 or data[:4] != LZ4_MAGIC:
        raise CorruptBatch("the lz4 data does not begin with a frame")
    if not data[4] & LZ4_INDEPENDENT_BLOCKS:
        raise CorruptBatch("the lz4 blocks depend on each other, which Kafka's readers do not support")
    decompressor = frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    size = 0
    feed: Buffer = data
    while not decompressor.eof:
        room = min(max(STREAM_PIECE_BYTES, 4 * len(feed), size), size_bytes_max - size + 1)
        try:
            plain = decompressor.decompress(feed, max_length=room)
        except (RuntimeError, EOFError) as error:
            raise CorruptBatch(f"the lz4 data is garbage: {error}") from error
        size += len(plain)
        if size > size_bytes_max:
            raise _too_large("lz4", size_bytes_max)
        if decompressor.needs_input and not decompressor.eof:
            raise CorruptBatch("the lz4 data ends too early")
        parts.append(plain)
        feed = b""
    if decompressor.unused_data:
        raise CorruptBatch("bytes follow the lz4 frame")
    return parts[0] if len(parts) == 1 else b"".join(parts)


@cache
def _idle_zstd_compressors(level: int) -> list[Any]:
    """A compressor costs more to make than to use, and serves one thread at a time: whoever uses one takes it out."""
    return []


def _zstd(data: Buffer, level: int | None) -> bytes:
    from zstandard import ZstdCompressor

    level = ZSTD_DEFAULT_LEVEL if level is None else level
    idle = _idle_zstd_compressors(level)
    try:
        compressor = idle.pop()
    except IndexError:
        compressor = ZstdCompressor(level=level)
    packed: bytes = compressor.compress(data)
    idle.append(compressor)
    return packed


def _unzstd(data: Buffer, size_bytes_max: int) -> bytes:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
    try:
        # The package ignores its own output bound when a frame states its size, so that statement is checked first.
        stated = zstandard.frame_content_size(data)
        if stated > size_bytes_max:
            raise _too_large("zstd", size_bytes_max)
        if stated > 0 and (plain := _unzstd_single(decompressor, data, stated)) is not None:
            return plain
        return _unzstd_stream(decompressor, data, size_bytes_max)
    except zstandard.ZstdError as error:
        raise CorruptBatch(f"the zstd data is garbage: {error}") from error


def _unzstd_single(decompressor: Any, data: Buffer, stated: int) -> bytes | None:
    """The one frame that nearly every batch is; nothing if more follows it."""
    import zstandard

    try:
        plain: bytes = decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError:
        return None
    return plain if len(plain) == stated else None


def _unzstd_stream(decompressor: Any, data: Buffer, size_bytes_max: int) -> bytes:
    # The reader takes a cut-off frame for a short one, so the frames are walked first.
    view, position = memoryview(data), 0
    while position < len(view):
        position = _zstd_frame_end(view, position)
    parts: list[bytes] = []
    size = 0
    with decompressor.stream_reader(data, read_across_frames=True, closefd=False) as reader:
        while True:
            room = min(max(STREAM_PIECE_BYTES, 4 * len(data) if not parts else size), size_bytes_max - size + 1)
            plain = reader.read(room)
            if not plain:
                return parts[0] if len(parts) == 1 else b"".join(parts)
            size += len(plain)
            if size > size_bytes_max:
                raise _too_large("zstd", size_bytes_max)
            parts.append(plain)


def _zstd_frame_end(view: memoryview, position: int) -> int:
    """Where the frame at ``position`` ends, by the sizes of its blocks (RFC 8878, 3.1.1)."""
    import zstandard

    start = bytes(view[position : position + ZSTD_FRAME_HEADER_BYTES_MAX])
    if len(start) >= ZSTD_SKIPPABLE_HEADER_BYTES and start[1:4] == ZSTD_SKIPPABLE_MAGIC and start[0] >> 4 == 5:
        end = position + ZSTD_SKIPPABLE_HEADER_BYTES + int.from_bytes(start[4:8], "little")
    else:
        position += zstandard.frame_header_size(start)
        is_last = False
        while not is_last:
            block = int.from_bytes(view[position : position + 3], "little")
            is_last, kind, size = block & 1 == 1, block >> 1 & 3, block >> 3
            position += 3 + (1 if kind == ZSTD_REPEATED_BYTE else size)
            if position > len(view):
                break
        end = position + (4 if start[4] & ZSTD_CHECKSUM_FLAG else 0)
    if end > len(view):
        raise CorruptBatch("the zstd data ends too early")
    return end


_COMPRESSORS: Final[dict[int, Callable[[Buffer, int | None], bytes]]] = {
    Codec.NONE: _plain,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int], bytes]]] = {
    Codec.NONE: _plain_bounded,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
