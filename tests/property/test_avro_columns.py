"""Avro data of random schemas is read as fastavro reads it, and no change to its bytes surprises the decoder."""

from __future__ import annotations

import importlib.util
import io
import random
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz = load(Path(__file__).parents[1] / "fuzz" / "fuzz_avro.py")


def sound(schema: Any, seed: int) -> bytes:
    """Data of a schema, as fastavro writes it."""
    from fastavro.utils import generate_one

    state = random.getstate()
    random.seed(seed)
    try:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, generate_one(schema))
        return out.getvalue()
    finally:
        random.setstate(state)


def plain(content: Any) -> Any:
    """Without what only one of the two has: UUIDs as objects, maps as lists of pairs, members of unions."""
    if isinstance(content, dict):
        members = [value for name, value in content.items() if name.startswith("member")]
        if members and len(members) == len(content):
            return plain(next((value for value in members if value is not None), None))
        return {name: plain(value) for name, value in content.items()}
    if isinstance(content, list):
        if content and all(isinstance(each, tuple) for each in content):
            return {name: plain(value) for name, value in content}
        return [plain(each) for each in content]
    return str(content) if type(content).__name__ == "UUID" else content


def without_empty_maps(content: Any) -> Any:
    """An empty map is an empty list in Arrow's rows."""
    if isinstance(content, dict):
        return {name: without_empty_maps(value) for name, value in content.items()} or []
    return [without_empty_maps(each) for each in content] if isinstance(content, list) else content


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 30))
def test_what_fastavro_writes_is_read_as_fastavro_reads_it(seed: int) -> None:
    schemas = fuzz.Schemas(seed)
    said = schemas.record()
    writer = fastavro.parse_schema(said)
    rows: list[bytes | None] = []
    for index in range(3):
        try:
            rows.append(sound(writer, seed + index))
        except (ValueError, OverflowError, TypeError):  # fastavro makes up values that it cannot write
            continue
    for reader in (None, schemas.reader_of(said)):
        array, malformed = fuzz.check_data(said, reader, [*rows, None])
        wrong = dict(malformed)
        for row, data in enumerate(rows):
            if row in wrong:  # it also makes up numbers that no day or decimal has
                assert wrong[row] in ("a number is out of range", "a decimal has more digits than its schema allows")
                continue
            try:
                read = fastavro.schemaless_reader(io.BytesIO(data or b""), writer, None)
            except (ValueError, OverflowError):  # a year after 9999
                continue
            if reader is not None:
                read = {field["name"]: read.get(field["name"], field.get("default")) for field in reader["fields"]}
            try:
                found = array[row].as_py()
            except (ValueError, OverflowError):
                continue
            assert without_empty_maps(plain(found)) == without_empty_maps(plain(read))
        assert array[len(rows)].as_py() is None


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 30), st.data())
def test_changed_bytes_are_read_or_refused_the_same_in_both_forms(seed: int, data: st.DataObject) -> None:
    schemas = fuzz.Schemas(seed)
    said = schemas.record()
    try:
        whole = bytearray(sound(fastavro.parse_schema(said), seed))
    except (ValueError, OverflowError, TypeError):
        whole = bytearray()
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(whole)))
        whole[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    rows = [bytes(whole), bytes(whole[: len(whole) // 2]), bytes(whole) + b"\0", None]
    fuzz.check_data(said, None, rows)
    fuzz.check_data(said, schemas.reader_of(said), rows)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 1000])
def test_columns_of_every_size_grow(size: int) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"]}]}
    rows = [None if row % 7 == 0 else bytes([2 * (row % 2)]) + b"\x02x" * (row % 2) for row in range(size)]
    array, malformed = fuzz.check_data(schema, None, rows)
    assert not malformed
    assert [row and row["a"] for row in array.to_pylist()] == [
        None if row % 7 == 0 or row % 2 == 0 else "x" for row in range(size)
    ]
    assert array.type == pa.struct([("a", pa.string())])
