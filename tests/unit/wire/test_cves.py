"""What went wrong in other brokers and clients that read this protocol, tried on our decoders."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard

from barnabas.model.errors import CorruptBatch, Malformed
from barnabas.wire.api import ApiKey
from barnabas.wire.compression import XERIAL_HEADER, Codec, decompress
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import declared, request_of
from barnabas.wire.primitives import TAGGED_FIELDS_MAX

MIB = 1024 * 1024
POSITIONS_MAX = 40
HUGE_COUNTS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f")


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("api_key", declared(), ids=lambda key: ApiKey(key).name)
def test_cve_2026_111108_no_count_of_any_version_allocates_more_than_the_frame_is_worth(api_key: int) -> None:
    request = request_of(ApiKey(api_key))
    samples = [(version, encode(request(), version)) for version in request.versions]

    def read_all() -> None:
        for version, data in samples:
            for position in range(min(len(data), POSITIONS_MAX) + 1):
                for count in HUGE_COUNTS:
                    with suppress(Malformed):
                        decode(request, version, data[:position] + count + data[position:])

    for version, data in samples:
        decode(request, version, data)  # compiled before it is measured
    assert peak_of(read_all) < 300_000


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@pytest.mark.parametrize("api_key", declared(), ids=lambda key: ApiKey(key).name)
def test_cve_2026_111115_unknown_tags_are_skipped_and_not_kept_and_too_many_are_refused(api_key: int) -> None:
    request = request_of(ApiKey(api_key))
    for version in request.versions:
        data = encode(request(), version)
        if not request.is_flexible(version) or not data.endswith(b"\0"):
            continue  # where its own tags come last, ours cannot simply be put behind them
        with pytest.raises(Malformed):
            decode(request, version, tagged(data, TAGGED_FIELDS_MAX + 1, b""))
        large = tagged(data, 100, b"x" * 2000)
        decode(request, version, large)
        found: list[Message] = []
        assert peak_of(lambda: found.append(decode(request, version, large))) < 100_000  # noqa: B023


def tagged(data: bytes, count: int, content: bytes) -> bytes:
    """A message without tags, with some that nobody knows."""
    tags = b"".join(varint(1000 + number) + varint(len(content)) + content for number in range(count))
    return data[:-1] + varint(count) + tags


BOMBS = {
    Codec.GZIP: lambda zeros: gzip.compress(zeros, compresslevel=1),
    Codec.SNAPPY: lambda zeros: bytes(cramjam.snappy.compress_raw(zeros)),
    Codec.LZ4: lz4.frame.compress,
    Codec.ZSTD: zstandard.compress,
}


@pytest.mark.parametrize("codec", BOMBS)
def test_cve_2026_111073_what_is_compressed_is_bounded_when_it_is_unpacked(codec: Codec) -> None:
    packed = BOMBS[codec](bytes(64 * MIB))

    def unpack() -> None:
        with pytest.raises(CorruptBatch):
            decompress(codec, packed, size_bytes_max=MIB)

    assert peak_of(unpack) < 8 * MIB


@pytest.mark.parametrize("is_framed", [False, True])
@pytest.mark.parametrize("claimed", [2**31 - 1, 2**32 - 1, 100 * MIB])
def test_cve_2023_34455_a_snappy_length_that_lies_allocates_nothing(claimed: int, is_framed: bool) -> None:
    lie = varint(claimed) + bytes(20)
    packed = XERIAL_HEADER + len(lie).to_bytes(4, "big") + lie if is_framed else lie

    def unpack() -> None:
        with pytest.raises(CorruptBatch):
            decompress(Codec.SNAPPY, packed, size_bytes_max=64 * MIB)

    assert peak_of(unpack) < MIB
