"""Avro as Arrow columns: the compiled decoder with schemas of a registry, and columns back to Avro.

Needs fastavro, which parses schemas and encodes rows; decoding is :mod:`barnabas.wire.avro`.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.client.serdes.avro import REFUSED
from barnabas.client.serdes.columns import ColumnDecoder, ColumnReader, Malformed
from barnabas.client.serdes.registered import head_of
from barnabas.client.serdes.registered_avro import parsed_with_references
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import needed
from barnabas.wire.avro.plan import Decoder
from barnabas.wire.avro.schema import UnsupportedSchema

if TYPE_CHECKING:
    import pyarrow


class AvroDecoder(ColumnDecoder):
    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def decode(self, column: pyarrow.Array, *, head: int = 0) -> tuple[pyarrow.Array, Malformed]:
        return self._decoder.decode(column, head=head)


class AvroReader(ColumnReader):
    """``named`` has the types of other schemas that the schema refers to."""

    kind = "avro"

    def __init__(self, parsed: Any, named: dict[str, Any]) -> None:
        self._parsed, self._named = parsed, named
        self.type = Decoder(parsed, named=named).type

    @classmethod
    async def of(cls, registry: Registry, schema: Schema) -> AvroReader:
        named: dict[str, Any] = {}
        return cls(await parsed_with_references(registry, schema, named), named)

    async def decoder(self, registry: Registry, schema_id: int) -> ColumnDecoder:
        schema = await registry.schema(schema_id)
        if schema.kind != "AVRO":
            raise Undecodable(f"schema {schema_id} is of the kind {schema.kind}, and not Avro")
        named: dict[str, Any] = {}
        try:
            parsed = await parsed_with_references(registry, schema, named)
            return AvroDecoder(Decoder(parsed, self._parsed, named=named, reader_named=self._named))
        except UnsupportedSchema as error:
            raise Undecodable(f"schema {schema_id}: {error}") from error
        except REFUSED as error:
            raise Undecodable(f"schema {schema_id} is not Avro: {error}") from error


class AvroEncoder:
    """Rows of an Arrow column as Avro, each behind the id of the schema. Can be pickled."""

    def __init__(self, schema: str, schema_id: int, named: dict[str, Any] | None = None) -> None:
        fastavro = needed("fastavro", "avro")
        self._parsed = fastavro.parse_schema(json.loads(schema), named_schemas=dict(named or {}))
        self._head = head_of(schema_id)

    def encode(self, column: pyarrow.Array) -> pyarrow.Array:
        """A column of bytes; nulls stay nulls. :class:`Unencodable` names the first row that does not fit."""
        import pyarrow as pa

        write = needed("fastavro", "avro").schemaless_writer
        shape = _shape(column.type)
        out: list[bytes | None] = []
        for row, content in enumerate(column.to_pylist()):
            if content is None:
                out.append(None)
                continue
            buffer = io.BytesIO()
            buffer.write(self._head)
            try:
                write(buffer, self._parsed, content if shape is None else shape(content))
            except REFUSED as error:
                raise Unencodable(f"row {row} cannot be encoded: {error!r}") from error
            out.append(buffer.getvalue())
        return pa.array(out, pa.binary())


def _shape(kind: pyarrow.DataType) -> Any:
    """What makes of a row of Arrow's what fastavro takes: maps as dicts. None where nothing is to be done."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        inner = _shape(kind.item_type)
        return lambda pairs: (
            None if pairs is None else {key: each if inner is None else inner(each) for key, each in pairs}
        )
    if pa.types.is_list(kind):
        inner = _shape(kind.value_type)
        return None if inner is None else lambda items: None if items is None else [inner(each) for each in items]
    if pa.types.is_struct(kind):
        shapes = {field.name: shape for field in kind if (shape := _shape(field.type)) is not None}
        if not shapes:
            return None
        return lambda row: None if row is None else row | {name: shape(row[name]) for name, shape in shapes.items()}
    return None


def schema_of_arrow(kind: pyarrow.DataType, name: str) -> str:
    """The Avro schema of a struct's columns, all of them optional; UnsupportedSchema for a type that Avro lacks."""
    return json.dumps(_schema(kind, name))


def _schema(kind: pyarrow.DataType, name: str) -> Any:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        fields = [
            {"name": field.name, "type": ["null", _schema(field.type, f"{name}_{field.name}")], "default": None}
            for field in kind
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _schema(kind.item_type, f"{name}_value")]}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _schema(kind.value_type, f"{name}_item")]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    for is_kind, said in (
        (pa.types.is_boolean, "boolean"),
        (lambda each: pa.types.is_signed_integer(each) and each.bit_width <= 32, "int"),
        (lambda each: each in (pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()), "long"),
        (lambda each: each == pa.float32(), "float"),
        (lambda each: each == pa.float64(), "double"),
        (lambda each: pa.types.is_string(each) or pa.types.is_large_string(each), "string"),
        (lambda each: pa.types.is_binary(each) or pa.types.is_large_binary(each), "bytes"),
        (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    ):
        if is_kind(kind):
            return said
    raise UnsupportedSchema(f"{name}: Avro has no type for {kind}")
