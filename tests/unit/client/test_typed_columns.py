"""Columns of a schema registry: rows grouped by the schema that wrote them, whichever kind it is of."""

from __future__ import annotations

import asyncio
import io
import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2, wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.errors import RegistryRefused, Unencodable
from barnabas.client.serdes.column_readers import reader_of, reader_of_subject, typed_columns
from barnabas.client.serdes.columns import TypedColumns
from barnabas.client.serdes.columns_avro import AvroEncoder, schema_of_arrow
from barnabas.client.serdes.registered import head_of
from barnabas.client.serdes.registry import Reference, Registry, Schema, SubjectVersion
from barnabas.wire.avro.schema import UnsupportedSchema

OLD: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "item", "type": "string", "default": "tea"}]}


class Schemas(Registry):
    """A registry in memory: what is asked of it is counted."""

    def __init__(self, *schemas: Schema) -> None:
        super().__init__("http://nowhere.invalid")
        self.schemas = list(schemas)
        self.asked: list[int] = []

    async def schema(self, schema_id: int) -> Schema:
        self.asked.append(schema_id)
        if not 1 <= schema_id <= len(self.schemas):
            raise RegistryRefused("Schema not found", status=404, code=40403)
        return self.schemas[schema_id - 1]

    async def serialized(self, schema_id: int) -> Schema:
        return await self.schema(schema_id)

    async def version(self, subject: str, version: Any = "latest", *, deleted: bool = False) -> SubjectVersion:
        number = len(self.schemas) if version == "latest" else int(version)
        return SubjectVersion(subject, number, number, self.schemas[number - 1])


def avro(schema: Any, schema_id: int, content: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), content)
    return head_of(schema_id) + out.getvalue()


def read(registry: Registry, rows: list[bytes | None], reader: Any = None) -> tuple[pa.Array, list[tuple[int, str]]]:
    async def work() -> Any:
        found = reader or await reader_of_subject(registry, "orders-value")
        array, malformed = await TypedColumns(registry, found).decode(pa.array(rows, pa.binary()))
        assert array.type == found.type
        return array, malformed

    return asyncio.run(work())  # type: ignore[no-any-return]


def text(schema: Any) -> Schema:
    return Schema(json.dumps(schema))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["old", "new", "null", "short", "other", "unknown", "long"]), max_size=30))
def test_rows_keep_their_order_whichever_schema_wrote_them(kinds: list[str]) -> None:
    registry = Schemas(text(OLD), text("string"), text(NEW))
    rows: list[bytes | None] = []
    expected: list[Any] = []
    reasons: list[tuple[int, str]] = []
    for row, kind in enumerate(kinds):
        data, value, reason = {
            "old": (avro(OLD, 1, {"id": row}), {"id": row, "item": "tea"}, ""),
            "new": (avro(NEW, 3, {"id": row, "item": "milk"}), {"id": row, "item": "milk"}, ""),
            "null": (None, None, ""),
            "short": (b"\0\0", None, "no schema id"),
            "other": (avro("string", 2, "x"), None, "cannot be read as"),
            "unknown": (head_of(9), None, "knows no schema 9"),
            "long": (avro(OLD, 1, {"id": row}) + b"\0", None, "bytes follow"),
        }[kind]
        rows.append(data)
        expected.append(value)
        reasons += [(row, reason)] if reason else []
    array, malformed = read(registry, rows)
    assert array.to_pylist() == expected
    assert [row for row, _ in malformed] == [row for row, _ in reasons]
    assert all(part in found for (_, found), (_, part) in zip(malformed, reasons, strict=True))


def test_a_schema_is_asked_for_once() -> None:
    registry = Schemas(text(OLD))

    async def work() -> None:
        columns = TypedColumns(registry, await reader_of_subject(registry, "orders-value"))
        for _ in range(3):
            await columns.decode(pa.array([avro(OLD, 1, {"id": 1})] * 5, pa.binary()))

    asyncio.run(work())
    assert registry.asked == [1]


def test_schemas_may_refer_to_others() -> None:
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "order", "type": "Order"}]}
    registry = Schemas(text(OLD), Schema(json.dumps(outer), references=(Reference("Order", "order", 1),)))
    array, malformed = read(registry, [head_of(2) + b"\x0e"])
    assert array.to_pylist() == [{"order": {"id": 7}}]
    assert malformed == []


def test_a_reader_may_be_a_type() -> None:
    @dataclass
    class Order:
        item: str
        id: int
        size: float = 0.5

    registry = Schemas(text(NEW))

    async def work() -> Any:
        columns = await typed_columns(registry, Order, "orders-value")
        return await columns.decode(pa.array([avro(NEW, 1, {"id": 1, "item": "x"})], pa.binary()))

    array, _ = asyncio.run(work())
    assert array.to_pylist() == [{"item": "x", "id": 1, "size": 0.5}]


def test_json_has_the_types_of_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "anything": {},
            "maybe": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "tree": {"$ref": "#"},
        },
        "required": ["id"],
        "$defs": {"Tag": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    registry = Schemas(Schema(json.dumps(schema), "JSON"))
    content = {
        "id": 1,
        "price": 2,
        "tags": [{"name": "a"}],
        "more": {"x": True},
        "anything": {"b": [1]},
        "maybe": None,
        "tree": {"id": 2, "tree": {"id": 3}},
    }
    rows: list[bytes | None] = [head_of(1) + json.dumps(each).encode() for each in (content, {"id": 2.0})]
    rows += [head_of(1) + each for each in (b"{", b'{"id": "x"}', b"{}", b'{"id": 1e30}', b"[]")]
    array, malformed = read(registry, [*rows, None])
    first, second = array.to_pylist()[:2]
    assert (first["id"], first["price"], first["tags"]) == (1, 2.0, [{"name": "a"}])
    assert (first["more"], first["anything"], first["maybe"]) == ([("x", True)], '{"b":[1]}', None)
    assert first["tree"]["id"] == 2
    assert first["tree"]["tree"] == '{"id":3}'
    assert second["id"] == 2
    assert [row for row, _ in malformed] == [2, 3, 4, 5, 6]


def a_protobuf_file() -> descriptor_pb2.FileDescriptorProto:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="item.proto", package="shop", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    message = file.message_type.add(name="Item")
    enum = message.enum_type.add(name="Color")
    enum.value.add(name="RED", number=0)
    enum.value.add(name="BLUE", number=1)
    optional, repeated = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    for number, (name, kind, label, target) in enumerate(
        [
            ("name", kinds.TYPE_STRING, optional, ""),
            ("sizes", kinds.TYPE_INT64, repeated, ""),
            ("color", kinds.TYPE_ENUM, optional, ".shop.Item.Color"),
            ("at", kinds.TYPE_MESSAGE, optional, ".google.protobuf.Timestamp"),
            ("note", kinds.TYPE_MESSAGE, optional, ".google.protobuf.StringValue"),
            ("big", kinds.TYPE_UINT64, optional, ""),
            ("counts", kinds.TYPE_MESSAGE, repeated, ".shop.Item.CountsEntry"),
        ],
        1,
    ):
        message.field.add(name=name, number=number, type=kind, label=label, type_name=target or None)
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=optional)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=optional)
    return file


def test_protobuf_has_the_types_of_its_message() -> None:
    from google.protobuf import descriptor_pool, message_factory

    file = a_protobuf_file()
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Item"))
    item = kind(name="tea", sizes=[1, 2], color=1, big=(1 << 64) - 1, counts={"x": 3})
    item.at.FromMilliseconds(1500)
    item.note.value = "n"
    registry = Schemas(Schema(b64encode(file.SerializeToString()).decode(), "PROTOBUF"))
    rows: list[bytes | None] = [
        head_of(1) + b"\0" + item.SerializeToString(),
        head_of(1) + b"\0",
        head_of(1) + b"\0\xff",
        None,
    ]
    array, malformed = read(registry, rows)
    first, second = array.to_pylist()[:2]
    assert first["at"].timestamp() == 1.5
    assert first | {"at": None} == {
        "name": "tea",
        "sizes": [1, 2],
        "color": "BLUE",
        "at": None,
        "note": "n",
        "big": (1 << 64) - 1,
        "counts": [("x", 3)],
    }
    assert second == {"name": "", "sizes": [], "color": "RED", "at": None, "note": None, "big": 0, "counts": []}
    assert [row for row, _ in malformed] == [2]


def test_columns_are_written_as_avro_of_a_schema_made_of_them() -> None:
    kind = pa.struct(
        [
            ("id", pa.int32()),
            ("price", pa.decimal128(10, 2)),
            ("at", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("tags", pa.map_(pa.string(), pa.list_(pa.field("element", pa.string())))),
            ("inner", pa.struct([("data", pa.binary()), ("ok", pa.bool_())])),
        ]
    )
    from datetime import UTC, date, datetime
    from decimal import Decimal

    rows = [
        {
            "id": 1,
            "price": Decimal("1.50"),
            "at": datetime(2024, 1, 1, tzinfo=UTC),
            "day": date(2024, 1, 1),
            "tags": [("a", ["b"])],
            "inner": {"data": b"\xff", "ok": True},
        },
        None,
        dict.fromkeys(kind.names),
    ]
    schema = schema_of_arrow(kind, "Row")
    encoded = AvroEncoder(schema, 1).encode(pa.array(rows, kind))
    reader = asyncio.run(reader_of(Schemas(), Schema(schema)))
    array, malformed = read(Schemas(Schema(schema)), encoded.to_pylist(), reader)
    assert malformed == []
    assert array.type == kind
    assert array.to_pylist() == rows


def test_rows_that_do_not_fit_are_named() -> None:
    with pytest.raises(Unencodable, match="row 1"):
        AvroEncoder(json.dumps(OLD), 1).encode(pa.array([{"id": 1}, {"id": None}]))
    with pytest.raises(UnsupportedSchema, match="no type"):
        schema_of_arrow(pa.struct([("x", pa.duration("s"))]), "Row")
