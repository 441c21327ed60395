"""Records that lie, compiled and interpreted: both codecs refuse the same."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from record_bytes import INT64_MAX, SAMPLE, a_record, body, decode, fill, payload_of, varint

from barnabas.model.errors import CorruptBatch
from barnabas.wire.records import Record

ZERO, NULL = varint(0), varint(-1)
MALFORMED = {
    "no record at all": b"\x00" * 0 + b"\x0c" + bytes(5),
    "a length of zero": varint(0) + bytes(7),
    "a negative length": varint(-1) + bytes(7),
    "a length beyond the batch": varint(1_000) + bytes(20),
    "a length of five bytes": body(bytes(5)) + bytes(2),
    "a length one too large": varint(7) + a_record()[1:],
    "a length one too small": varint(len(a_record()) - 2) + a_record()[1:],
    "a byte left in the record": body(b"\x00", ZERO, ZERO, NULL, NULL, ZERO, b"\x00"),
    "an endless varint": b"\xff" * 12,
    "a length of six bytes, overlong": b"\x8c\x80\x80\x80\x80\x00" + bytes(6),
    "a length of 33 bits": b"\x8c\x80\x80\x80\x10" + bytes(6),
    "an offset of six bytes, overlong": body(b"\x00", ZERO, b"\x80\x80\x80\x80\x80\x00", NULL, NULL, ZERO),
    "an offset of 33 bits": body(b"\x00", ZERO, b"\x80\x80\x80\x80\x10", NULL, NULL, ZERO),
    "a negative offset": body(b"\x00", ZERO, varint(-1), NULL, NULL, ZERO),
    "a timestamp of eleven bytes": body(b"\x00", b"\x80" * 10 + b"\x00", ZERO, NULL, NULL, ZERO),
    "a timestamp of 65 bits": body(b"\x00", b"\x80" * 9 + b"\x02", ZERO, NULL, NULL, ZERO),
    "a timestamp cut off by the record's end": body(b"\x00", b"\x80" * 6) + bytes(20),
    "a key of length -2": body(b"\x00", ZERO, ZERO, varint(-2), NULL, ZERO),
    "a key beyond the record": body(b"\x00", ZERO, ZERO, varint(50), NULL, ZERO) + bytes(100),
    "a key of two gigabytes": body(b"\x00", ZERO, ZERO, varint((1 << 31) - 1), NULL, ZERO),
    "a key to the last byte": body(b"\x00", ZERO, ZERO, varint(3), b"abc"),
    "a value of length -2": body(b"\x00", ZERO, ZERO, NULL, varint(-2), ZERO),
    "a value beyond the record": body(b"\x00", ZERO, ZERO, NULL, varint(9), ZERO) + bytes(100),
    "a value to the last byte": body(b"\x00", ZERO, ZERO, NULL, varint(3), b"abc"),
    "a negative count of headers": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(-1)),
    "more headers than bytes": body(b"\x00", ZERO, ZERO, NULL, NULL, varint((1 << 31) - 1)),
    "more headers than there are": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(2), ZERO, NULL, ZERO),
    "fewer headers than there are": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(1), ZERO, NULL, ZERO, NULL),
    "a header without a name": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(1), NULL, ZERO),
    "a header's name beyond the record": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(1), varint(5), ZERO) + bytes(50),
    "a header's value of length -2": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(1), ZERO, varint(-2)),
    "a header's value beyond the record": body(b"\x00", ZERO, ZERO, NULL, NULL, varint(1), ZERO, varint(5)) + bytes(50),
}


@pytest.mark.parametrize("lie", MALFORMED)
@pytest.mark.parametrize("place", ["first", "second"])
def test_a_malformed_record_is_refused(twin: Any, lie: str, place: str) -> None:
    payload = MALFORMED[lie] if place == "first" else a_record() + MALFORMED[lie]
    for count in (1, 2, 3) if place == "first" else (2, 3):
        with pytest.raises(CorruptBatch):
            twin.codec.check(payload, count, 0, False)
        with pytest.raises(CorruptBatch):
            decode(twin, payload, count)
        with pytest.raises(CorruptBatch):
            fill(twin, payload, count)


def test_the_longest_varints_there_are_are_read(twin: Any) -> None:
    largest = (1 << 31) - 1
    assert varint(largest) == b"\xfe\xff\xff\xff\x0f"
    payload = a_record(largest, INT64_MAX) + a_record(largest, -INT64_MAX)
    found = decode(twin, payload, 2)
    assert [record.offset for record in found] == [largest, largest]
    assert [record.timestamp for record in found] == [INT64_MAX, -INT64_MAX]
    padded = body(b"\x07", b"\x80\x00", b"\x80\x80\x80\x80\x00", b"\x81\x00", b"\x81\x80\x00", b"\x80\x00")
    assert decode(twin, padded, 1) == [Record(0, 0, None, None, ())]


@pytest.mark.parametrize(("base", "delta"), [(1, INT64_MAX), (INT64_MAX, 1), (-2, -INT64_MAX), (-INT64_MAX - 1, -5)])
def test_a_timestamp_that_leaves_64_bits_is_refused(twin: Any, base: int, delta: int) -> None:
    payload = a_record(0, delta)
    with pytest.raises(CorruptBatch):
        twin.codec.check(payload, 1, base, False)
    with pytest.raises(CorruptBatch):
        decode(twin, payload, 1, base_timestamp=base)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 4, 5, 1 << 31])
def test_a_count_that_is_not_that_of_the_records_is_refused(twin: Any, count: int) -> None:
    payload = a_record() * 2
    tracemalloc.start()
    try:
        for read in (
            lambda: twin.codec.check(payload, count, 0, False),
            lambda: decode(twin, payload, count),
        ):
            with pytest.raises(CorruptBatch):
                read()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_records_cut_anywhere_are_refused(twin: Any) -> None:
    payload = payload_of(SAMPLE[:3])
    for size in range(len(payload)):
        with pytest.raises(CorruptBatch):
            twin.codec.check(payload[:size], 3, 1_000, False)
        with pytest.raises(CorruptBatch):
            decode(twin, payload[:size], 3)


def test_bad_utf_8_in_a_headers_name_is_replaced_as_in_java(twin: Any) -> None:
    payload = a_record(headers=((b"\xff\xfename", b"x"),))
    assert decode(twin, payload, 1)[0].headers == (("\ufffd\ufffdname", b"x"),)
