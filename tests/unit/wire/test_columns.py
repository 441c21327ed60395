"""Batches as Arrow columns: the same rows as tuples would be, in the layout that Spark's Kafka source has."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, columns, records
from barnabas.wire.compression import Codec

UNPLACED = [
    (
        1_700_000_000_000 + index,
        None if index % 3 == 0 else b"key-%d" % index,
        None if index % 5 == 0 else b"v" * (index * 3),
        ((f"h{index}", b"x" * index), ("straße", None)) if index % 4 == 0 else (),
    )
    for index in range(200)
]


def several_batches() -> bytearray:
    """A batch per codec, a control batch between them, and the beginning of one more."""
    buffer = bytearray()
    for codec in Codec:
        append_time = 77 if codec is Codec.LZ4 else None
        buffer += records.encode_batch(UNPLACED, base_offset=200 * codec, codec=codec, append_time=append_time)
    buffer += records.encode_batch([(0, b"\x00\x00\x00\x01", b"", ())], base_offset=1_000, is_control=True)
    buffer += records.encode_batch(UNPLACED, base_offset=1_001)
    buffer += records.encode_batch(UNPLACED, base_offset=1_201)[:-1]
    return buffer


def rows_of(found: pa.RecordBatch) -> list[tuple[Any, ...]]:
    milliseconds = found["timestamp"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()
    headers = found["headers"].to_pylist() if "headers" in found.schema.names else [None] * found.num_rows
    return [
        (offset, timestamp, key, value, tuple((pair["key"], pair["value"]) for pair in pairs or ()))
        for offset, timestamp, key, value, pairs in zip(
            found["offset"].to_pylist(),
            milliseconds,
            found["key"].to_pylist(),
            found["value"].to_pylist(),
            headers,
            strict=True,
        )
    ]


def test_columns_hold_what_tuples_would() -> None:
    buffer = several_batches()
    found = columns.to_arrow(memoryview(buffer), topic="orders", partition=3, with_headers=True)
    found.validate(full=True)
    expected = [record for record in records.decode_all(buffer) if record.offset != 1_000]
    assert rows_of(found) == [tuple(record) for record in expected]
    assert set(found["topic"].to_pylist()) == {"orders"}
    assert set(found["partition"].to_pylist()) == {3}
    kinds = dict(zip(found["offset"].to_pylist(), found["timestampType"].to_pylist(), strict=True))
    assert all(kind == (1 if 600 <= offset < 800 else 0) for offset, kind in kinds.items())


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    found = columns.to_arrow(several_batches(), topic="t", partition=0)
    assert found.schema == columns.schema()
    assert {name: str(kind) for name, kind in zip(found.schema.names, found.schema.types, strict=True)} == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int32",
        "offset": "int64",
        "timestamp": "timestamp[us, tz=UTC]",
        "timestampType": "int32",
    }
    assert columns.schema(with_headers=True).names[-1] == "headers"


def test_a_row_without_headers_has_null_as_in_spark() -> None:
    found = columns.to_arrow(several_batches(), topic="t", partition=0, with_headers=True)
    assert found["headers"].null_count == found.num_rows - 6 * 50
    assert found["headers"][1].as_py() is None


@pytest.mark.parametrize(
    ("start", "end"), [(0, 5_000), (5, 999), (199, 201), (1_000, 1_001), (300, 300), (1_150, 1_201)]
)
def test_offsets_outside_of_the_range_are_cut(start: int, end: int) -> None:
    buffer = several_batches()
    found = columns.to_arrow(buffer, topic="t", partition=0, start_offset=start, end_offset=end, with_headers=True)
    found.validate(full=True)
    expected = [record for record in records.decode_all(buffer) if start <= record.offset < end]
    assert rows_of(found) == [tuple(record) for record in expected if record.offset != 1_000]


def test_batches_outside_of_the_range_are_not_even_decompressed() -> None:
    buffer = several_batches()
    buffer[batch.HEADER_BYTES + 5] ^= 0xFF
    with pytest.raises(CorruptBatch, match="checksum"):
        columns.to_arrow(buffer, topic="t", partition=0)
    assert columns.to_arrow(buffer, topic="t", partition=0, start_offset=200).num_rows == 1_000


def test_batches_may_be_left_out() -> None:
    found = columns.to_arrow(several_batches(), topic="t", partition=0, keep=lambda header: header.base_offset >= 800)
    assert set(found["offset"].to_pylist()) == {*range(800, 1_000), *range(1_001, 1_201)}


@pytest.mark.parametrize("buffer", [b"", b"cut", several_batches()[:100]])
def test_nothing_is_an_empty_record_batch(buffer: bytes) -> None:
    found = columns.to_arrow(buffer, topic="t", partition=0, with_headers=True)
    assert found.num_rows == 0
    assert found.schema == columns.schema(with_headers=True)


def test_a_count_that_lies_allocates_nothing() -> None:
    sealed = records.encode_batch(UNPLACED)
    sealed[57:61] = b"\x7f\xff\xff\xff"
    batch.seal(sealed, 0)
    with pytest.raises(CorruptBatch, match="cannot hold"):
        columns.to_arrow(sealed, topic="t", partition=0)


def test_a_timestamp_that_microseconds_cannot_say_is_refused() -> None:
    sealed = records.encode_batch([((1 << 62) - 1, None, None, ())])
    with pytest.raises(CorruptBatch):
        columns.to_arrow(sealed, topic="t", partition=0)


def test_a_bomb_is_refused() -> None:
    sealed = records.encode_batch([(0, None, bytes(1 << 20), ())], codec=Codec.ZSTD)
    with pytest.raises(CorruptBatch):
        columns.to_arrow(sealed, topic="t", partition=0, size_bytes_max=1 << 19)


def as_columns() -> dict[str, pa.Array]:
    return {
        "timestamp": pa.array([record[0] for record in UNPLACED], pa.int64()),
        "key": pa.array([record[1] for record in UNPLACED], pa.binary()),
        "value": pa.array([record[2] for record in UNPLACED], pa.binary()),
        "headers": pa.array(
            [[{"key": name, "value": content} for name, content in record[3]] or None for record in UNPLACED],
            columns.headers_type(),
        ),
    }


@pytest.mark.parametrize("codec", Codec)
def test_columns_are_encoded_as_tuples_are(codec: Codec) -> None:
    given = as_columns()
    facts: dict[str, Any] = {"base_offset": 9, "codec": codec, "producer_id": 3, "is_transactional": True}
    assert columns.encode_columns(**given, **facts) == records.encode_batch(UNPLACED, **facts)
    del given["headers"]
    bare = [(timestamp, key, value, ()) for timestamp, key, value, _ in UNPLACED]
    assert columns.encode_columns(**given, **facts) == records.encode_batch(bare, **facts)


def test_slices_of_columns_begin_where_they_say() -> None:
    given = {name: column[57:190] for name, column in as_columns().items()}
    assert columns.encode_columns(**given) == records.encode_batch(UNPLACED[57:190])
    del given["headers"]
    bare = [(timestamp, key, value, ()) for timestamp, key, value, _ in UNPLACED[57:190]]
    assert columns.encode_columns(**given) == records.encode_batch(bare)


def test_text_large_columns_chunks_and_one_time_for_all_are_taken() -> None:
    expected = records.encode_batch([(5, None, b"a", ()), (5, None, None, ()), (5, None, "é".encode(), ())])
    for value in (
        pa.array(["a", None, "é"], pa.string()),
        pa.array([b"a", None, "é".encode()], pa.large_binary()),
        pa.array(["a", None, "é"], pa.large_string()),
        pa.chunked_array([pa.array(["a"]), pa.array([None, "é"])]),
        pa.array(["a", None, "é"]).dictionary_encode(),
    ):
        assert columns.encode_columns(value, timestamp=5) == expected
    nothing = records.encode_batch([(5, None, None, ())])
    assert columns.encode_columns(pa.nulls(1), timestamp=5) == nothing
    assert columns.encode_columns(pa.nulls(1, pa.binary()), key=pa.nulls(1), timestamp=5) == nothing


def test_what_arrow_read_is_what_arrow_writes() -> None:
    found = columns.to_arrow(records.encode_batch(UNPLACED), topic="t", partition=0, with_headers=True)
    again = columns.encode_columns(
        found["value"], key=found["key"], timestamp=found["timestamp"], headers=found["headers"]
    )
    assert again == records.encode_batch(UNPLACED)


def test_columns_that_do_not_fit_together_are_refused() -> None:
    value = pa.array([b"a", b"b"])
    with pytest.raises(ValueError, match="at least one"):
        columns.encode_columns(value[:0], timestamp=0)
    with pytest.raises(ValueError, match="equally"):
        columns.encode_columns(value, key=value[:1], timestamp=0)
    with pytest.raises(ValueError, match="timestamp"):
        columns.encode_columns(value, timestamp=pa.array([1]))
    with pytest.raises(ValueError, match="timestamp"):
        columns.encode_columns(value, timestamp=pa.array([1, None]))


def test_a_missing_pyarrow_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    columns.arrow.cache_clear()
    try:
        with pytest.raises(ImportError, match="pip install"):
            columns.to_arrow(b"", topic="t", partition=0)
    finally:
        columns.arrow.cache_clear()


def test_bad_bytes_in_the_name_of_a_header_are_replaced_as_in_java() -> None:
    sealed = records.encode_batch([(0, None, b"v", (("ab", b"1"), ("cd", b"2"))), (0, None, b"v", (("é", None),))])
    at = bytes(sealed).index(b"ab")
    sealed[at : at + 2] = b"\xc3\xa9"[:1] + b"b"
    batch.seal(sealed, 0)
    found = columns.to_arrow(sealed, topic="t", partition=0, with_headers=True)
    found.validate(full=True)
    assert found["headers"].to_pylist() == [
        [{"key": "\ufffdb", "value": b"1"}, {"key": "cd", "value": b"2"}],
        [{"key": "é", "value": None}],
    ]


def test_a_header_without_a_name_cannot_be_sent() -> None:
    headers = pa.array([[{"key": None, "value": b"x"}]], columns.headers_type())
    with pytest.raises(ValueError, match="needs a name"):
        columns.encode_columns(pa.array([b"v"]), timestamp=0, headers=headers)
