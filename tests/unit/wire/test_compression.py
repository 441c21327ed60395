"""Every codec both ways, and no input that makes one of them return or allocate more than it was allowed."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import cramjam
import lz4.frame
import pytest
import zstandard

from barnabas.model.errors import CorruptBatch
from barnabas.wire import compression
from barnabas.wire.compression import Codec, compress, decompress

MIB = 1 << 20
PACKED = [codec for codec in Codec if codec is not Codec.NONE]


def text(size: int) -> bytes:
    """Bytes that compress about three to one."""
    chance = random.Random(size)
    words = [b'{"id":%d,"city":"Praha","open":true}' % chance.randrange(10**6) for _ in range(size // 30 + 1)]
    return b",".join(words)[:size]


def stream_of(data: bytes, **options: bool) -> bytes:
    """A zstd frame as Java writes it: without its size."""
    compressor = zstandard.ZstdCompressor(write_content_size=False, **options).compressobj()
    return compressor.compress(data) + compressor.flush()


def bomb(codec: Codec, size: int) -> bytes:
    zeros = bytes(size)
    if codec is Codec.ZSTD:
        return stream_of(zeros)
    return compress(codec, zeros, 1)


@pytest.mark.parametrize("size", [0, 1, 100, 32 << 10, (32 << 10) + 1, 300_000])
@pytest.mark.parametrize("codec", Codec)
def test_what_is_compressed_comes_back(codec: Codec, size: int) -> None:
    data = text(size)
    for level in (None, 1, 5, 9):
        packed = compress(codec, memoryview(data), level)
        assert type(packed) is bytes
        assert decompress(codec, memoryview(packed), size_bytes_max=size) == data
        assert decompress(codec, bytearray(packed), size_bytes_max=size) == data


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 9), (Codec.ZSTD, 19)])
def test_a_higher_level_compresses_better(codec: Codec, level: int) -> None:
    data = text(200_000)
    assert len(compress(codec, data, level)) < len(compress(codec, data, 1))


def test_lz4_has_kafkas_levels_the_default_being_the_fast_one() -> None:
    data = text(200_000)
    assert compress(Codec.LZ4, data) == compress(Codec.LZ4, data, compression.LZ4_DEFAULT_LEVEL)
    assert len(compress(Codec.LZ4, data, 17)) < len(compress(Codec.LZ4, data))


@pytest.mark.parametrize("codec", Codec)
def test_a_byte_more_than_allowed_is_refused(codec: Codec) -> None:
    packed = compress(codec, text(100_000))
    with pytest.raises(CorruptBatch, match="99999"):
        decompress(codec, packed, size_bytes_max=99_999)


@pytest.mark.parametrize("codec", PACKED)
def test_data_cut_anywhere_is_refused(codec: Codec) -> None:
    packed = compress(codec, text(3_000))
    for size in range(len(packed)):
        if codec is Codec.SNAPPY and size == len(compression.XERIAL_HEADER):
            continue  # a stream of no blocks is a stream
        with pytest.raises(CorruptBatch):
            decompress(codec, packed[:size], size_bytes_max=MIB)


@pytest.mark.parametrize("codec", PACKED)
def test_flipped_bits_are_refused_or_stay_within_the_bound(codec: Codec) -> None:
    packed = compress(codec, text(3_000))
    for position in range(len(packed)):
        changed = bytearray(packed)
        changed[position] ^= 1 << position % 8
        try:
            assert len(decompress(codec, changed, size_bytes_max=10_000)) <= 10_000
        except CorruptBatch:
            continue


@pytest.mark.parametrize("codec", PACKED)
def test_noise_is_refused(codec: Codec) -> None:
    chance = random.Random(7)
    for size in (0, 1, 5, 20, 500):
        with pytest.raises(CorruptBatch):
            decompress(codec, chance.randbytes(size), size_bytes_max=MIB)


@pytest.mark.parametrize("codec", PACKED)
def test_bytes_behind_the_data_are_refused(codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, text(3_000)) + b"\x00\x00\x00\x07behind", size_bytes_max=MIB)


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_costs_no_more_memory_than_the_bound(codec: Codec) -> None:
    packed = bomb(codec, 64 * MIB)
    decompress(codec, compress(codec, b"warm up"), size_bytes_max=100)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(codec, packed, size_bytes_max=MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * MIB + len(packed)


def test_a_zstd_frame_that_states_its_size_is_refused_before_a_byte_is_made() -> None:
    packed = compress(Codec.ZSTD, bytes(256 * MIB))
    assert len(packed) < 32 << 10
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(Codec.ZSTD, packed, size_bytes_max=MIB)


def test_a_zstd_window_beyond_javas_largest_is_refused() -> None:
    frame = bytearray(stream_of(b"small"))
    assert frame[4] & 0x20 == 0  # there is a window byte
    frame[5] = (31 - 10) << 3  # 2 GiB
    with pytest.raises(CorruptBatch):
        decompress(Codec.ZSTD, frame, size_bytes_max=MIB)


@pytest.mark.parametrize("has_checksum", [False, True])
def test_zstd_streams_without_a_size_may_be_concatenated(has_checksum: bool) -> None:
    data = text(200_000)
    frame = stream_of(data, write_checksum=has_checksum)
    skippable = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert decompress(Codec.ZSTD, frame + skippable + frame, size_bytes_max=400_000) == data * 2
    for size in (1, 5, 9, len(frame) // 2, len(frame) - 1):
        with pytest.raises(CorruptBatch):
            decompress(Codec.ZSTD, frame[:size], size_bytes_max=400_000)


def test_gzip_members_may_be_concatenated() -> None:
    data = text(200_000)
    assert decompress(Codec.GZIP, gzip.compress(data) * 3, size_bytes_max=600_000) == data * 3


def test_ten_thousand_empty_gzip_members_are_an_attack() -> None:
    with pytest.raises(CorruptBatch, match="members"):
        decompress(Codec.GZIP, gzip.compress(b"") * 10_000, size_bytes_max=MIB)


def test_a_zlib_stream_is_not_gzip() -> None:
    with pytest.raises(CorruptBatch):
        decompress(Codec.GZIP, zlib.compress(text(100)), size_bytes_max=MIB)


def test_snappy_is_read_raw_and_framed() -> None:
    data = text(100_000)
    raw = bytes(cramjam.snappy.compress_raw(data))
    framed = compress(Codec.SNAPPY, data)
    assert framed.startswith(compression.XERIAL_HEADER)
    assert decompress(Codec.SNAPPY, raw, size_bytes_max=100_000) == data
    assert decompress(Codec.SNAPPY, framed + framed, size_bytes_max=200_000) == data * 2


def test_a_snappy_length_that_lies_allocates_nothing() -> None:
    lie = b"\xff\xff\xff\xff\x0f" + bytes(20)
    for packed in (lie, compression.XERIAL_HEADER + len(lie).to_bytes(4, "big") + lie):
        tracemalloc.start()
        try:
            with pytest.raises(CorruptBatch):
                decompress(Codec.SNAPPY, packed, size_bytes_max=100 * MIB)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MIB


@pytest.mark.parametrize("size", [-1, 0, 1 << 30, 0x82534E41 - (1 << 32)])
def test_a_snappy_block_beyond_its_stream_is_refused(size: int) -> None:
    with pytest.raises(CorruptBatch):
        decompress(
            Codec.SNAPPY, compression.XERIAL_HEADER + size.to_bytes(4, "big", signed=True) + b"x", size_bytes_max=MIB
        )


def test_lz4_frames_are_those_that_java_reads() -> None:
    facts = lz4.frame.get_frame_info(compress(Codec.LZ4, text(300_000)))
    assert facts["block_size"] == 64 << 10
    assert not facts["block_linked"]
    assert not facts["content_checksum"]
    assert facts["content_size"] == 0


def test_dependent_lz4_blocks_are_refused_as_java_refuses_them() -> None:
    with pytest.raises(CorruptBatch, match="depend"):
        decompress(Codec.LZ4, lz4.frame.compress(text(300_000), block_linked=True), size_bytes_max=MIB)


def test_an_lz4_frame_may_state_its_size_but_not_lie_about_it() -> None:
    data = text(300_000)
    frame = lz4.frame.compress(data, block_linked=False, store_size=True, content_checksum=True)
    assert decompress(Codec.LZ4, frame, size_bytes_max=MIB) == data
    shorter = lz4.frame.compress(data[:-1], block_linked=False, store_size=True, content_checksum=True)
    with pytest.raises(CorruptBatch):
        decompress(Codec.LZ4, frame[:15] + shorter[15:], size_bytes_max=MIB)


def test_there_is_no_fifth_codec() -> None:
    with pytest.raises(CorruptBatch, match="codec 5"):
        decompress(5, b"", size_bytes_max=MIB)


def test_threads_may_compress_at_the_same_time() -> None:
    # Clients and workers do; a zstd compressor that two threads share answers with an error or with garbage.
    plain = b"barnabas " * 20_000

    def work(_: int) -> bool:
        return all(
            decompress(Codec.ZSTD, compress(Codec.ZSTD, plain), size_bytes_max=1 << 20) == plain for _ in range(40)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
