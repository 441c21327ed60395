"""The Avro decoder, compiled and interpreted: every type, evolution, and what each malformed datum is called."""

from __future__ import annotations

import datetime as dt
import importlib.util
import io
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from barnabas.wire.avro.schema import UnsupportedSchema, varint


def _fuzz() -> Any:
    path = Path(__file__).parents[2] / "fuzz" / "fuzz_avro.py"
    spec = importlib.util.spec_from_file_location("avro_twins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUZZ = _fuzz()


@pytest.fixture(params=["compiled", "interpreted"])
def avro(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return FUZZ.INTERPRETED
    if not FUZZ.COMPILED.decoder.COMPILED:
        pytest.skip("the Avro decoder is not compiled here")
    return FUZZ.COMPILED


def written(schema: Any, *values: Any) -> list[bytes]:
    parsed = fastavro.parse_schema(schema)
    rows = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        rows.append(out.getvalue())
    return rows


def read(avro: Any, writer: Any, rows: list[bytes | None], reader: Any = None, **more: Any) -> tuple[Any, list[Any]]:
    parsed = None if reader is None else fastavro.parse_schema(reader)
    decoder = avro.plan.Decoder(fastavro.parse_schema(writer), parsed)
    array, malformed = decoder.decode(pa.array(rows, pa.binary()), **more)
    array.validate(full=True)
    assert array.type == decoder.type
    return array, malformed


def values_of(avro: Any, writer: Any, rows: list[bytes | None], reader: Any = None) -> list[Any]:
    array, malformed = read(avro, writer, rows, reader)
    assert malformed == []
    found: list[Any] = array.to_pylist()
    return found


def reason(avro: Any, writer: Any, data: bytes, reader: Any = None) -> str:
    array, malformed = read(avro, writer, [data], reader)
    assert array.to_pylist() == [None]
    assert [row for row, _ in malformed] == [0]
    return str(malformed[0][1])


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields]}


def fields(*each: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(each)}


UTC = dt.UTC
FIXED = {"type": "fixed", "name": "F", "size": 2}
TYPES: dict[str, tuple[Any, Any, pa.DataType]] = {
    "boolean": ("boolean", True, pa.bool_()),
    "int": ("int", -(1 << 31), pa.int32()),
    "long": ("long", (1 << 63) - 1, pa.int64()),
    "float": ("float", 0.5, pa.float32()),
    "double": ("double", -1e300, pa.float64()),
    "bytes": ("bytes", b"\xff\x00", pa.binary()),
    "string": ("string", "straße 東京 🚀", pa.string()),
    "fixed": (FIXED, b"ab", pa.binary()),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.string()),
    "array": ({"type": "array", "items": "long"}, [1, 2, 3], pa.list_(pa.field("element", pa.int64()))),
    "map": ({"type": "map", "values": "int"}, {"a": 1, "b": 2}, pa.map_(pa.string(), pa.int32())),
    "record": (record(("x", "int"), name="Inner"), {"x": 7}, pa.struct([("x", pa.int32())])),
    "date": ({"type": "int", "logicalType": "date"}, dt.date(2024, 2, 29), pa.date32()),
    "time-millis": ({"type": "int", "logicalType": "time-millis"}, dt.time(23, 59, 59, 999000), pa.time32("ms")),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, dt.time(1, 2, 3, 4), pa.time64("us")),
    "timestamp-millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        pa.timestamp("us", tz="UTC"),
    ),
    "timestamp-micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        dt.datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
        pa.timestamp("us", tz="UTC"),
    ),
    "local-timestamp-millis": (
        {"type": "long", "logicalType": "local-timestamp-millis"},
        dt.datetime(2024, 1, 2, 3, 4, 5),
        pa.timestamp("us"),
    ),
    "local-timestamp-micros": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        dt.datetime(2024, 1, 2, 3, 4, 5, 6),
        pa.timestamp("us"),
    ),
    "decimal of bytes": (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        Decimal("-12345678.90"),
        pa.decimal128(10, 2),
    ),
    "decimal of a fixed": (
        {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0},
        Decimal(-(10**38) + 1),
        pa.decimal128(38, 0),
    ),
    "uuid": (
        {"type": "string", "logicalType": "uuid"},
        UUID("12345678-1234-5678-1234-567812345678"),
        pa.string(),
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_read_alone_optional_in_arrays_and_in_records(avro: Any, name: str) -> None:
    schema, value, kind = TYPES[name]
    plain = list(value.items()) if name == "map" else str(value) if name == "uuid" else value
    assert values_of(avro, schema, written(schema, value)) == [plain]
    assert read(avro, schema, written(schema, value))[0].type == kind
    optional = ["null", schema]
    assert values_of(avro, optional, [*written(optional, None, value), None]) == [None, plain, None]
    array = {"type": "array", "items": optional}
    assert values_of(avro, array, written(array, [], [value, None, value])) == [[], [plain, None, plain]]
    outer = record(("before", "string"), ("it", optional), ("after", "long"))
    rows = [{"before": "b", "it": each, "after": 5} for each in (value, None)]
    assert values_of(avro, outer, written(outer, *rows)) == [
        {"before": "b", "it": each, "after": 5} for each in (plain, None)
    ]


def test_a_uuid_may_be_a_fixed(avro: Any) -> None:
    schema = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    found = UUID("12345678-1234-5678-1234-567812345678")
    assert values_of(avro, schema, [found.bytes, None]) == [str(found), None]


def test_nanoseconds_stay_nanoseconds(avro: Any) -> None:
    array, malformed = read(avro, {"type": "long", "logicalType": "timestamp-nanos"}, [varint(1_000_000_001)])
    assert not malformed
    assert array.type == pa.timestamp("ns", tz="UTC")
    assert array.cast(pa.int64()).to_pylist() == [1_000_000_001]


def test_a_logical_type_that_is_not_valid_is_ignored(avro: Any) -> None:
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}
    assert values_of(avro, wide, [b"\x04\x01\x02"]) == [b"\x01\x02"]
    assert values_of(avro, {"type": "string", "logicalType": "date"}, [b"\x02x"]) == ["x"]


def test_a_union_of_several_types_is_a_struct_of_members(avro: Any) -> None:
    schema = ["null", "string", record(("x", "int"), name="Inner"), "double"]
    rows = [b"\0", b"\x02\x02a", b"\x04\x0e", b"\x06" + struct.pack("<d", 1.5)]
    assert values_of(avro, schema, rows) == [
        None,
        {"member0": "a", "member1": None, "member2": None},
        {"member0": None, "member1": {"x": 7}, "member2": None},
        {"member0": None, "member1": None, "member2": 1.5},
    ]


def test_numbers_of_two_sizes_are_one_column(avro: Any) -> None:
    assert values_of(avro, ["int", "null", "long"], [b"\0\x02", b"\x02", b"\x04\x04"]) == [1, None, 2]
    rows = [b"\0" + struct.pack("<f", 0.5), b"\x02" + struct.pack("<d", 0.25)]
    assert values_of(avro, ["float", "double"], rows) == [0.5, 0.25]


def test_arrays_come_in_blocks_with_and_without_a_size(avro: Any) -> None:
    schema = {"type": "array", "items": "string"}
    items = b"\x02a\x02b"
    assert values_of(avro, schema, [varint(1) + b"\x02z" + varint(-2) + varint(4) + items + b"\0"]) == [["z", "a", "b"]]
    assert "does not end" in reason(avro, schema, varint(-2) + varint(3) + items + b"\0")


# --- evolution --------------------------------------------------------------------------------------------------


def test_fields_are_found_by_name_defaults_fill_in_and_others_are_skipped(avro: Any) -> None:
    writer = record(("gone", {"type": "map", "values": ["null", "bytes"]}), ("a", "int"), ("b", "string"))
    reader = fields(
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "new", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "raw", "type": "bytes", "default": "\xff"},
        {"name": "renamed", "aliases": ["a"], "type": "double"},
        {"name": "inner", "type": record(("x", "int"), name="I"), "default": {"x": 3}},
        {"name": "maybe", "type": ["null", "long"], "default": None},
    )
    rows = written(writer, {"gone": {"k": b"v", "n": None}, "a": 5, "b": "x"}, {"gone": {}, "a": -1, "b": ""})
    rest = {"new": [1, 2], "raw": b"\xff", "inner": {"x": 3}, "maybe": None}
    assert values_of(avro, writer, rows, reader) == [
        {"b": "x", "renamed": 5.0} | rest,
        {"b": "", "renamed": -1.0} | rest,
    ]


@pytest.mark.parametrize(
    ("writer", "reader", "data", "expected"),
    [
        ("int", "long", varint(7), 7),
        ("int", "float", varint(7), 7.0),
        ("int", "double", varint(7), 7.0),
        ("long", "float", varint(7), 7.0),
        ("long", "double", varint(7), 7.0),
        ("float", "double", struct.pack("<f", 0.5), 0.5),
        ("string", "bytes", b"\x02a", b"a"),
        ("bytes", "string", b"\x02a", "a"),
        ("int", ["null", "long"], varint(7), 7),
        (["int", "double"], "double", b"\0\x0e", 7.0),
        (["null", "int"], "int", b"\x02\x0e", 7),
    ],
)
def test_types_are_widened(avro: Any, writer: Any, reader: Any, data: bytes, expected: Any) -> None:
    assert values_of(avro, writer, [data], reader) == [expected]


def test_symbols_of_an_enum_are_found_by_name_or_become_the_default(avro: Any) -> None:
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
    reader = {"type": "enum", "name": "E", "symbols": ["C", "A", "Z"]}
    assert values_of(avro, writer, [b"\0", b"\x04"], reader) == ["A", "C"]
    assert "no place" in reason(avro, writer, b"\x02", reader)
    assert values_of(avro, writer, [b"\x02"], reader | {"default": "Z"}) == ["Z"]


def test_branches_that_the_reader_lacks_are_refused_only_when_they_come(avro: Any) -> None:
    assert values_of(avro, ["null", "string", "int"], [b"\x04\x02"], "long") == [1]
    assert "no place" in reason(avro, ["null", "string", "int"], b"\x02\x02a", "long")
    assert "no place" in reason(avro, ["null", "int"], b"\0", "int")


def test_records_of_a_union_share_the_readers_columns(avro: Any) -> None:
    one, two = record(("x", "int"), name="One"), record(("y", "string"), name="Two")
    reader = {
        "type": "record",
        "name": "Both",
        "fields": [{"name": "x", "type": "int", "default": 9}, {"name": "y", "type": "string", "default": "d"}],
    }
    assert values_of(avro, [one, two], [b"\0\x02", b"\x02\x02a"], reader) == [{"x": 1, "y": "d"}, {"x": 9, "y": "a"}]


@pytest.mark.parametrize(
    ("writer", "reader", "message"),
    [
        ("string", "int", "cannot be read as"),
        (record(("a", "int")), record(("a", "int"), ("b", "int")), "no default"),
        (FIXED, FIXED | {"size": 3}, "cannot be read as"),
        ("string", ["null", "int"], "no place"),
    ],
)
def test_schemas_that_do_not_go_together_are_refused(avro: Any, writer: Any, reader: Any, message: str) -> None:
    with pytest.raises(UnsupportedSchema, match=message):
        avro.plan.Decoder(fastavro.parse_schema(writer), fastavro.parse_schema(reader))


TREE = record(("name", "string"), ("children", {"type": "array", "items": "R"}))


def test_a_type_that_contains_itself_has_no_columns_but_can_be_skipped(avro: Any) -> None:
    with pytest.raises(UnsupportedSchema, match="contains itself"):
        avro.plan.Decoder(fastavro.parse_schema(TREE))
    outer = {
        "type": "record",
        "name": "Outer",
        "fields": [{"name": "tree", "type": TREE}, {"name": "id", "type": "int"}],
    }
    row = {"tree": {"name": "a", "children": [{"name": "b", "children": []}]}, "id": 4}
    reader = {"type": "record", "name": "Outer", "fields": [{"name": "id", "type": "int"}]}
    assert values_of(avro, outer, written(outer, row), reader) == [{"id": 4}]
    deep = b"\x02a\x02" * 100 + b"\0" * 100 + b"\x08"
    assert "too deeply" in reason(avro, outer, deep, reader)


# --- malformed data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "data", "message"),
    [
        ("string", b"\x06ab", "ends too early"),
        ("string", b"\x01", "ends too early"),
        ("string", b"\x02\xff", "not UTF-8"),
        ("long", b"\x80", "ends too early"),
        ("long", b"\xff" * 9 + b"\x02", "ends too early"),
        ("int", varint(1 << 31), "out of range"),
        ("long", b"\x02\x02", "bytes follow"),
        ("boolean", b"\x02", "boolean"),
        ("double", b"1234567", "ends too early"),
        (["null", "int"], b"\x04", "no such branch"),
        (["null", "int"], b"\x01", "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "no such symbol"),
        (FIXED, b"a", "ends too early"),
        ({"type": "array", "items": "null"}, varint(1 << 40) + b"\0", "too many"),
        ({"type": "array", "items": "null"}, varint(-(1 << 63)) + b"\0\0", "too many"),
        ({"type": "map", "values": record()}, varint(5000) + b"\0", "too many"),
        ({"type": "int", "logicalType": "time-millis"}, varint(86_400_000), "out of range"),
        ({"type": "long", "logicalType": "timestamp-millis"}, varint(1 << 62), "out of range"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x64", "more digits"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x9c", "more digits"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38},
            varint(17) + b"\x01" + b"\0" * 16,
            "more digits",
        ),
        ("null", b"\0", "bytes follow"),
    ],
)
def test_malformed_data_is_named(avro: Any, schema: Any, data: bytes, message: str) -> None:
    assert message in reason(avro, schema, data)


def test_a_malformed_row_leaves_its_neighbours_alone(avro: Any) -> None:
    schema = record(
        ("a", "string"), ("b", {"type": "array", "items": record(("c", "string"), name="I")}), ("d", "long")
    )
    good = written(schema, *({"a": f"a{n}", "b": [{"c": f"c{m}"} for m in range(n)], "d": n} for n in range(5)))
    rows: list[bytes | None] = []
    for row in good:
        rows += [row, row[:-1], row + b"\0", None, row.replace(b"c0", b"\xff0")]
    array, malformed = read(avro, schema, rows)
    assert array.to_pylist()[::5] == [{"a": f"a{n}", "b": [{"c": f"c{m}"} for m in range(n)], "d": n} for n in range(5)]
    assert {row % 5 for row, _ in malformed} == {1, 2, 4}
    assert len(malformed) == 5 + 5 + 4  # the first has no c0
    assert [each for row, each in enumerate(array.to_pylist()) if row in dict(malformed)] == [None] * len(malformed)


def test_what_stands_before_the_data_is_left_out(avro: Any) -> None:
    rows = [b"\0\0\0\0\1\x02a", b"\0\0\0\0", None, b"\0\0\0\0\1"]
    array, malformed = read(avro, "string", rows, head=5)
    assert array.to_pylist() == ["a", None, None, None]
    assert [row for row, _ in malformed] == [1, 3]


def test_a_slice_of_a_column_is_read_from_its_first_row(avro: Any) -> None:
    column = pa.array([None, *written("string", "a"), None, *written("string", "b", "c")], pa.binary())
    decoder = avro.plan.Decoder("string")
    assert decoder.decode(column.slice(2, 2))[0].to_pylist() == [None, "b"]
    assert decoder.decode(column.slice(5))[0].to_pylist() == []


def test_schemas_without_a_bound_are_refused(avro: Any) -> None:
    deep: Any = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UnsupportedSchema, match="levels deep"):
        avro.plan.Decoder(deep)
    doubling: Any = record(("x", "int"), name="T0")
    for level in range(1, 20):
        doubling = record(("l", doubling), ("r", f"T{level - 1}"), name=f"T{level}")
    with pytest.raises(UnsupportedSchema, match="columns"):
        avro.plan.Decoder(fastavro.parse_schema(doubling))


def test_types_may_be_defined_by_another_schema(avro: Any) -> None:
    named: dict[str, Any] = {}
    fastavro.parse_schema(record(("x", "int"), name="Other"), named_schemas=named)
    schema = fastavro.parse_schema(record(("it", "Other")), named_schemas=named)
    array, _ = avro.plan.Decoder(schema, named=named).decode(pa.array([b"\x02"], pa.binary()))
    assert array.to_pylist() == [{"it": {"x": 1}}]
