"""The record codec and Arrow's columns, compiled and interpreted: both are held to the same words."""

from __future__ import annotations

from typing import Any

import pytest
from record_bytes import INT64_MAX, SAMPLE, a_header, columns_for, fill, payload_of

from barnabas.model.errors import CorruptBatch
from barnabas.wire import record_encoder


def test_columns_have_arrows_layout(twin: Any) -> None:
    rows, columns, keys, values = fill(twin, payload_of(SAMPLE), 4, base_offset=50, base_timestamp=1_000)
    assert rows == 4
    assert list(columns[0]) == [50, 51, 52, 53]
    assert list(columns[1]) == [1_000 * record.timestamp for record in SAMPLE]
    assert list(keys[0]) == [0, 1, 1, 1, 9_001]
    assert bytes(keys[1][:9_001]) == b"k" + b"q" * 9_000
    assert keys[2][0] & 0x0F == 0b1101
    assert list(values[0]) == [0, 1, 301, 301, 301]
    assert values[2][0] & 0x0F == 0b1011


def test_columns_that_are_too_small_are_not_overrun(twin: Any) -> None:
    payload = payload_of(SAMPLE)
    for rows, size_bytes in ((3, len(payload)), (4, 100), (0, len(payload)), (4, 0)):
        columns, _, _ = columns_for(twin, rows, size_bytes)
        with pytest.raises(ValueError, match=r"few|full"):
            twin.codec.fill(payload, a_header(4, base_timestamp=1_000), 0, INT64_MAX, columns, 0)
    columns, keys, _ = columns_for(twin, 4, len(payload))
    short = (columns[0], columns[1], twin.codec.BytesColumn(keys[0][:3], keys[1], keys[2]), columns[3])
    with pytest.raises(ValueError, match="full"):
        twin.codec.fill(payload, a_header(4, base_timestamp=1_000), 0, INT64_MAX, short, 0)


def test_columns_are_encoded_as_tuples_are(twin: Any) -> None:
    plain = [(record.timestamp, record.key, record.value, ()) for record in SAMPLE]
    expected, base, largest = twin.encoder.encode(plain, 61)
    _, _, keys, values = fill(twin, bytes(expected[61:]), 4, base_timestamp=base)
    times = memoryview(bytearray(32)).cast("q")
    for index, record in enumerate(SAMPLE):
        times[index] = record.timestamp
    found = twin.encoder.encode_columns(times, (*keys, 0), (*values, 0), 61)
    assert found == (expected, base, largest)


@pytest.mark.parametrize("bounds", [(0, 5), (3, 1), (-1, 2), (0, 1, 0, 1)])
def test_a_column_with_false_bounds_is_not_read(bounds: tuple[int, ...]) -> None:
    if not record_encoder.COMPILED:
        pytest.skip("an interpreted slice cannot leave its bytes")
    rows = len(bounds) - 1
    lying = memoryview(bytearray(4 * len(bounds))).cast("i")
    honest = memoryview(bytearray(4 * len(bounds))).cast("i")
    for index, bound in enumerate(bounds):
        lying[index] = bound
    times = memoryview(bytearray(8 * rows)).cast("q")
    with pytest.raises(ValueError, match="outside"):
        record_encoder.encode_columns(times, (honest, b"", None, 0), (lying, b"abc", b"\x00", 0), 0)
    with pytest.raises(ValueError, match="equally"):
        record_encoder.encode_columns(times, (honest[:-1], b"", None, 0), (honest, b"", None, 0), 0)


def header_columns(rows: int, count: int, size: int) -> tuple[Any, ...]:
    """Room for so many rows and headers, with all bits set."""
    bounds = [memoryview(bytearray(4 * (number + 1))).cast("i") for number in (rows, count, count)]
    bits = [bytearray(b"\xff") * ((number + 7) // 8) for number in (rows, count)]
    names, values = bytearray(size), bytearray(size)
    return bounds[0], bits[0], bounds[1], names, bounds[2], values, bits[1]


def test_headers_become_columns_and_come_back(twin: Any) -> None:
    payload = b"\x02a\x04xy\x02b\x01" + b"\x04cd\x00"
    spots = memoryview(bytearray(4 * 6)).cast("i")
    spots[0], spots[1], spots[4], spots[5] = 0, 2, 8, 1
    assert twin.headers.count(spots, 3) == 3
    columns = header_columns(3, 3, len(payload))
    assert twin.headers.fill(payload, spots, 0, 3, columns, 0) == 3
    lists, list_bits, name_bounds, names, value_bounds, values, value_bits = columns
    assert (list(lists), list_bits[0] & 7) == ([0, 2, 2, 3], 0b101)
    assert (list(name_bounds), bytes(names[:4])) == ([0, 1, 2, 4], b"abcd")
    assert (list(value_bounds), bytes(values[:2]), value_bits[0] & 7) == ([0, 2, 2, 2], b"xy", 0b101)
    out, ends = bytearray(100), memoryview(bytearray(16)).cast("i")
    size = twin.headers.encode(
        lists, (list_bits, 0), (name_bounds, names, None, 0), (value_bounds, values, value_bits, 0), out, ends
    )
    assert bytes(out[:size]) == b"\x04" + payload[:8] + b"\x00" + b"\x02" + payload[8:]
    assert list(ends) == [0, 9, 10, size]


@pytest.mark.parametrize(
    ("payload", "position", "count"),
    [
        (b"", 0, 1),
        (b"\x02a", 0, 1),
        (b"\x01", 0, 1),
        (b"\x7ea\x00", 0, 1),
        (b"\x02a\x7e", 0, 1),
        (b"\x02a\x03", 0, 1),
        (b"\x02a\x00", 0, 2),
        (b"\x02a\x00", -1, 1),
        (b"\x02a\x00", 99, 1),
        (b"\x02a\x00", 0, -1),
        (b"\x02a\x00", 0, 99),
        (b"\xff\xff\xff\xff\xff\xff", 0, 1),
    ],
)
def test_headers_that_lie_are_refused(twin: Any, payload: bytes, position: int, count: int) -> None:
    spots = memoryview(bytearray(8)).cast("i")
    spots[0], spots[1] = position, count
    with pytest.raises(CorruptBatch):
        twin.headers.fill(payload, spots, 0, 1, header_columns(1, 2, len(payload)), 0)
