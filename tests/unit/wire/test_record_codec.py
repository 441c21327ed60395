"""The record codec, compiled and interpreted: both are held to the same words.

Payloads are written here byte by byte, so that a mistake shared by encoder and decoder has nowhere to hide.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec, record_encoder, record_headers, records
from barnabas.wire.batch import BatchHeader
from barnabas.wire.compression import Codec
from barnabas.wire.records import Record

WIRE = Path(records.__file__).parent
INT64_MAX = (1 << 63) - 1


def interpreted(name: str) -> ModuleType:
    """The module from its source, whether or not a compiled one stands beside it."""
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", WIRE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INTERPRETED = SimpleNamespace(
    codec=interpreted("record_codec"), encoder=interpreted("record_encoder"), headers=interpreted("record_headers")
)
COMPILED = SimpleNamespace(codec=record_codec, encoder=record_encoder, headers=record_headers)


@pytest.fixture(params=["compiled", "interpreted"])
def twin(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return INTERPRETED
    if not (record_codec.COMPILED and record_encoder.COMPILED):
        pytest.skip("the record codec is not compiled here")
    return COMPILED


def varint(value: int) -> bytes:
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def field(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def framed(body: bytes) -> bytes:
    return varint(len(body)) + body


def a_record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    pairs = b"".join(field(name) + field(content) for name, content in headers)
    deltas = varint(timestamp_delta) + varint(offset_delta)
    return framed(b"\x00" + deltas + field(key) + field(value) + varint(len(headers)) + pairs)


def a_header(record_count: int, **fields: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, record_count)._replace(**fields)


def decode(twin: Any, payload: bytes, record_count: int, **fields: int) -> list[Record]:
    found: list[Record] = twin.codec.decode(payload, a_header(record_count, **fields), Record)
    return found


SAMPLE = [
    Record(50, 1_000, b"k", b"v", ()),
    Record(51, 999, None, b"x" * 300, (("trace", b"\x00\xff"), ("empty", b""), ("null", None))),
    Record(52, 5_000_000_000, b"", None, (("straße-東京-🚀", b"y" * 70), ("", b"z"))),
    Record(53, 1_000, b"q" * 9_000, b"", ()),
]


def payload_of(sample: list[Record], *, base_offset: int = 50, base_timestamp: int = 1_000) -> bytes:
    return b"".join(
        a_record(
            record.offset - base_offset,
            record.timestamp - base_timestamp,
            record.key,
            record.value,
            tuple((name.encode(), content) for name, content in record.headers),
        )
        for record in sample
    )


def test_records_are_decoded_as_written(twin: Any) -> None:
    found = decode(twin, payload_of(SAMPLE), 4, base_offset=50, base_timestamp=1_000)
    assert found == SAMPLE
    assert all(type(record) is Record for record in found)
    gc.collect()
    assert found == SAMPLE  # the collector has no business with the compiled ones, which hold no cycles


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(b"<" + data + b">")[1:-1]])
def test_any_buffer_will_do(twin: Any, kind: Callable[[bytes], Any]) -> None:
    assert decode(twin, kind(payload_of(SAMPLE)), 4, base_offset=50, base_timestamp=1_000) == SAMPLE
    assert twin.codec.check(kind(payload_of(SAMPLE)), 4, 1_000, False)[2]


def test_records_are_encoded_as_the_format_says(twin: Any) -> None:
    plain, base, largest = twin.encoder.encode([record[1:] for record in SAMPLE], 7)
    assert type(plain) is bytearray
    assert plain == bytes(7) + payload_of(SAMPLE)
    assert (base, largest) == (1_000, 5_000_000_000)


def test_append_time_is_the_time_of_every_record(twin: Any) -> None:
    found = decode(twin, payload_of(SAMPLE), 4, attributes=batch.APPEND_TIME, max_timestamp=77)
    assert {record.timestamp for record in found} == {77}


def test_many_records_of_growing_size_are_encoded_whole(twin: Any) -> None:
    unplaced = [(index, b"k" * (index % 70), b"v" * (index * 3), [("h", b"c" * index)]) for index in range(2_000)]
    plain, _, _ = twin.encoder.encode(unplaced, 0)
    found = decode(twin, bytes(plain), 2_000)
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in found] == unplaced


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_keys_and_values_may_be_other_buffers(twin: Any, kind: type) -> None:
    plain, _, _ = twin.encoder.encode([(0, kind(b"key"), kind(b"value"), (("h", kind(b"content")),))], 0)
    assert plain == a_record(headers=((b"h", b"content"),))


@pytest.mark.parametrize("wrong", [5, "text", 2.5, [1]])
def test_what_is_no_buffer_is_refused(twin: Any, wrong: object) -> None:
    for unplaced in ((0, wrong, b"", ()), (0, b"", wrong, ()), (0, b"", b"", (("h", wrong),))):
        with pytest.raises(TypeError):
            twin.encoder.encode([unplaced], 0)


@pytest.mark.parametrize("timestamp", [1 << 62, -(1 << 62) - 1, 1 << 70])
def test_a_timestamp_beyond_reason_is_refused(twin: Any, timestamp: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        twin.encoder.encode([(timestamp, None, None, ())], 0)


def test_headers_that_change_their_mind_write_nothing_beyond_their_place(twin: Any) -> None:
    class Fickle(list[Any]):
        turn = 0

        def __iter__(self) -> Any:
            self.turn += 1
            return iter([("name", b"x" * 100_000 * self.turn)])

    fickle = Fickle([0])
    if twin is COMPILED:
        with pytest.raises(ValueError, match="changed"):
            twin.encoder.encode([(0, b"", b"", fickle)], 0)
    else:
        twin.encoder.encode([(0, b"", b"", fickle)], 0)


def test_check_finds_the_largest_timestamp_and_its_first_record(twin: Any) -> None:
    payload = b"".join(a_record(index, delta) for index, delta in enumerate([5, -3, 90, 90, 2]))
    assert twin.codec.check(payload, 5, 1_000, False) == (90, 2, True, ())
    only_negative = a_record(0, -7) + a_record(1, -5)
    assert twin.codec.check(only_negative, 2, 1_000, False)[:2] == (-5, 1)


@pytest.mark.parametrize("deltas", [(0, 2, 3), (1, 2, 3), (0, 0, 0), (2, 1, 0), (0, 1, 3)])
def test_gaps_between_offsets_are_told(twin: Any, deltas: tuple[int, ...]) -> None:
    payload = b"".join(a_record(delta) for delta in deltas)
    assert twin.codec.check(payload, 3, 0, False)[2] is False
    assert [record.offset for record in decode(twin, payload, 3, base_offset=10)] == [10 + delta for delta in deltas]


def test_records_without_a_key_are_told_only_when_keys_are_required(twin: Any) -> None:
    payload = b"".join(a_record(index, key=None if index % 3 == 0 else b"") for index in range(7))
    assert twin.codec.check(payload, 7, 0, True)[3] == (0, 3, 6)
    assert twin.codec.check(payload, 7, 0, False)[3] == ()
    many = b"".join(a_record(index, key=None) for index in range(3_000))
    assert len(twin.codec.check(many, 3_000, 0, True)[3]) == record_codec.KEYLESS_MAX


def test_a_batch_that_compaction_has_emptied_is_sound(twin: Any) -> None:
    assert twin.codec.check(b"", 0, 5, True) == (-INT64_MAX, -1, True, ())
    assert decode(twin, b"", 0) == []
    facts = records.check(b"", record_count=0, base_timestamp=5, keys_required=False)
    assert facts.max_timestamp == -1


def body(*parts: bytes) -> bytes:
    return framed(b"".join(parts))


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


def columns_for(twin: Any, rows: int, size_bytes: int) -> tuple[Any, ...]:
    def int64() -> memoryview:
        return memoryview(bytearray(8 * rows)).cast("q")

    def cells() -> Any:
        bounds = memoryview(bytearray(4 * (rows + 1))).cast("i")
        return bounds, bytearray(size_bytes), bytearray(b"\xff" * ((rows + 7) // 8))

    keys, values = cells(), cells()
    twin_columns = (int64(), int64(), twin.codec.BytesColumn(*keys), twin.codec.BytesColumn(*values))
    return twin_columns, keys, values


def fill(twin: Any, payload: bytes, record_count: int, **fields: int) -> Any:
    columns, keys, values = columns_for(twin, max(record_count, 0), len(payload))
    rows = twin.codec.fill(payload, a_header(record_count, **fields), 0, INT64_MAX, columns, 0)
    return rows, columns, keys, values


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


def test_decoding_leaves_the_collector_as_it_was() -> None:
    sealed = records.encode_batch([(0, None, None, ())])
    assert gc.isenabled()
    records.decode_batch(sealed)
    assert gc.isenabled()
    gc.disable()
    try:
        records.decode_batch(sealed)
        assert not gc.isenabled()
    finally:
        gc.enable()
    sealed[61] = 0
    with pytest.raises(CorruptBatch):
        records.decode_batch(sealed)
    assert gc.isenabled()


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_decoded_from_where_it_lies(codec: Codec) -> None:
    unplaced = [tuple(record[1:]) for record in SAMPLE]
    sealed = records.encode_batch(unplaced, base_offset=50, codec=codec)
    assert records.decode_batch(b"before" + sealed + b"after", 6) == SAMPLE
    assert records.decode_all(sealed + sealed + sealed[:-1]) == SAMPLE * 2


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_decompresses_to_more_than_allowed_is_refused(codec: Codec) -> None:
    sealed = records.encode_batch([(0, None, bytes(100_000), ())], codec=codec)
    if codec is not Codec.NONE:
        with pytest.raises(CorruptBatch):
            records.decode_batch(sealed, size_bytes_max=99_999)
    assert len(records.decode_batch(sealed, size_bytes_max=100_100)) == 1


def test_a_batch_cut_off_or_placed_beyond_the_last_offset_is_refused() -> None:
    sealed = records.encode_batch([(0, None, b"value", ())])
    with pytest.raises(CorruptBatch, match="cut off"):
        records.decode_batch(sealed[:-1])
    for base_offset in (-1, INT64_MAX):
        batch.assign(sealed, 0, base_offset=base_offset, leader_epoch=0)
        with pytest.raises(CorruptBatch, match="offset"):
            records.decode_batch(sealed)


def test_a_batch_of_nothing_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="at least one"):
        records.encode_batch([])


def test_facts_are_given_in_absolute_time() -> None:
    facts = records.check(a_record(0, 5) + a_record(1, 9), record_count=2, base_timestamp=100, keys_required=True)
    assert facts == (109, 1, True, ())


def test_the_source_runs_where_cython_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cython", None)
    alone = SimpleNamespace(codec=interpreted("record_codec"), encoder=interpreted("record_encoder"))
    assert not alone.codec.COMPILED
    assert not alone.encoder.COMPILED
    plain, _, _ = alone.encoder.encode([record[1:] for record in SAMPLE], 0)
    assert decode(alone, bytes(plain), 4, base_offset=50, base_timestamp=1_000) == SAMPLE


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


def test_records_carry_their_place_if_told_to(twin: Any) -> None:
    sealed = records.encode_batch([(5, b"k", b"v", (("h", None),))], base_offset=7)
    header = batch.read_header(sealed)
    (found,) = twin.codec.decode(memoryview(sealed)[batch.HEADER_BYTES :], header, tuple, ("orders", 3))
    assert found == ("orders", 3, 7, 5, b"k", b"v", (("h", None),))
