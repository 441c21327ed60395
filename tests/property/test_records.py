"""Records of every shape survive every way there and back, and no change to their bytes surprises the codec."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute  # half a second, which is no example's fault
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire import batch, columns, record_codec, record_encoder, records
from barnabas.wire.compression import Codec, compress, decompress


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz = load(Path(__file__).parents[1] / "fuzz" / "fuzz_records.py")
interpreted_encoder = load(Path(records.__file__).parent / "record_encoder.py")

contents = st.none() | st.binary(max_size=40) | st.integers(0, 9_000).map(lambda size: bytes(size))
headers = st.lists(st.tuples(st.text(max_size=20), contents), max_size=3).map(tuple)
timestamps = st.integers(0, 1 << 45) | st.integers(-(1 << 50), 1 << 50)
a_record = st.tuples(timestamps, contents, contents, headers)
some_records = st.lists(a_record, min_size=1, max_size=12)


@given(some_records, st.sampled_from(Codec), st.integers(0, 1 << 60))
def test_what_is_encoded_is_decoded(unplaced: list[Any], codec: Codec, base_offset: int) -> None:
    sealed = records.encode_batch(unplaced, base_offset=base_offset, codec=codec)
    header = batch.read_header(sealed)
    assert batch.crc_matches(sealed, 0, header)
    found = records.decode_batch(sealed)
    assert [tuple(record[1:]) for record in found] == unplaced
    assert [record.offset for record in found] == list(range(base_offset, header.next_offset))
    assert header.max_timestamp == max(record[0] for record in unplaced)


@given(some_records, st.integers(0, 61))
def test_both_encoders_write_the_same_bytes(unplaced: list[Any], reserved_bytes: int) -> None:
    assert interpreted_encoder.encode(unplaced, reserved_bytes) == record_encoder.encode(unplaced, reserved_bytes)


@given(some_records)
def test_check_agrees_with_the_records(unplaced: list[Any]) -> None:
    sealed = records.encode_batch(unplaced)
    facts = records.check(
        memoryview(sealed)[batch.HEADER_BYTES :],
        record_count=len(unplaced),
        base_timestamp=unplaced[0][0],
        keys_required=True,
    )
    largest = max(record[0] for record in unplaced)
    assert facts.max_timestamp == largest
    assert facts.max_timestamp_delta_offset == [record[0] for record in unplaced].index(largest)
    assert facts.is_dense
    assert facts.keyless == tuple(index for index, record in enumerate(unplaced) if record[1] is None)


@settings(deadline=None)  # the first look at columns imports half of pyarrow
@given(st.lists(some_records, max_size=3), st.integers(0, 40), st.integers(0, 40))
def test_columns_and_tuples_are_the_same_rows(batches: list[list[Any]], start_offset: int, end_offset: int) -> None:
    buffer = bytearray()
    for index, unplaced in enumerate(batches):
        buffer += records.encode_batch(unplaced, base_offset=12 * index, codec=Codec.ZSTD if index % 2 else Codec.NONE)
    found = columns.to_arrow(
        buffer, topic="t", partition=0, start_offset=start_offset, end_offset=end_offset, with_headers=True
    )
    found.validate(full=True)
    rows = zip(
        found["offset"].to_pylist(),
        found["timestamp"].cast(pa.int64()).to_pylist(),
        found["key"].to_pylist(),
        found["value"].to_pylist(),
        found["headers"].to_pylist(),
        strict=True,
    )
    assert [
        (offset, timestamp // 1000, key, value, tuple((pair["key"], pair["value"]) for pair in pairs or ()))
        for offset, timestamp, key, value, pairs in rows
    ] == [tuple(record) for record in records.decode_all(buffer) if start_offset <= record.offset < end_offset]


@given(st.lists(st.tuples(timestamps, contents, contents), min_size=1, max_size=12), st.data())
def test_columns_are_encoded_as_tuples_are(rows: list[Any], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows) - 1))
    times, keys, values = (
        pa.array([row[index] for row in rows], kind)[start:]
        for index, kind in enumerate((pa.int64(), pa.binary(), pa.binary()))
    )
    expected = records.encode_batch([(*row, ()) for row in rows[start:]])
    assert columns.encode_columns(values, key=keys, timestamp=times) == expected


@given(some_records, st.data())
@settings(max_examples=300)
def test_a_changed_payload_is_judged_alike_by_both_codecs(unplaced: list[Any], data: st.DataObject) -> None:
    payload, base_timestamp, _ = record_encoder.encode(unplaced, 0)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(payload) - 1))
        if data.draw(st.booleans()):
            payload[position] = data.draw(st.integers(0, 255) | st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
        else:
            payload[position:position] = data.draw(st.binary(max_size=11))
    record_count = len(unplaced) + data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    fuzz.check_payload(bytes(payload), record_count, base_timestamp)


@given(some_records, st.sampled_from(Codec), st.data())
@settings(deadline=None)  # the first look at columns imports half of pyarrow
def test_a_changed_batch_is_records_or_corrupt(unplaced: list[Any], codec: Codec, data: st.DataObject) -> None:
    sealed = records.encode_batch(unplaced, codec=codec)
    position = data.draw(st.integers(0, len(sealed) - 1))
    sealed[position] ^= data.draw(st.integers(1, 255))
    fuzz.check_batch(bytes(sealed))
    fuzz.check_batch(bytes(sealed[:position]))


@given(st.binary(max_size=200))
def test_bytes_from_nowhere_are_records_or_corrupt(data: bytes) -> None:
    fuzz.check(data)


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=3_000) | st.integers(0, 200_000).map(bytes), level=st.none() | st.integers(1, 9))
@settings(max_examples=30)
def test_every_codec_gives_back_what_it_took(codec: Codec, data: bytes, level: int | None) -> None:
    assert decompress(codec, compress(codec, data, level), size_bytes_max=len(data)) == data


def test_the_compiled_codec_was_tried() -> None:
    if not record_codec.COMPILED:
        pytest.skip("the record codec is not compiled here: both sides of the comparison were interpreted")
    assert not fuzz.INTERPRETED.COMPILED
    assert not interpreted_encoder.COMPILED
