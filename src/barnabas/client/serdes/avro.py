"""Avro without a registry: writer and reader have the same schema, and only the data is in the record.

Needs fastavro, which is imported when a serde is made. With a registry use ``registered_avro``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from barnabas.client.serdes.serde import Place, Serde, needed, undecodable, unencodable

AvroSchema: TypeAlias = str | Mapping[str, Any] | list[Any]  # JSON text, or what it says

# What fastavro raises for data that does not fit is not one type but many.
REFUSED: Final = (ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, OverflowError, RecursionError)


def parsed(schema: AvroSchema) -> Any:
    """The schema as fastavro wants it, checked."""
    fastavro = needed("fastavro", "avro")
    said = json.loads(schema) if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[", '"') else schema
    return fastavro.parse_schema(said)


def typed(schema: AvroSchema | type | None) -> tuple[AvroSchema | None, Any]:
    """The schema, and for a type what turns its objects into dicts and back."""
    if not isinstance(schema, type):
        return schema, None
    from barnabas.client.serdes.avro_types import TypedObjects, schema_of

    return schema_of(schema), TypedObjects(schema)


class Avro(Serde[Any]):
    """``Avro(Order)`` for a dataclass or struct, which has a schema of its own; ``Avro(schema)`` for dicts."""

    def __init__(self, schema: AvroSchema | type) -> None:
        said, self._objects = typed(schema)
        assert said is not None
        self._schema = parsed(said)
        fastavro = needed("fastavro", "avro")
        self._write, self._read = fastavro.schemaless_writer, fastavro.schemaless_reader

    def encode(self, content: Any, place: Place) -> bytes:
        out = io.BytesIO()
        plain = content if self._objects is None else self._objects.plain(content, place)
        try:
            self._write(out, self._schema, plain)
        except REFUSED as error:
            raise unencodable(content, place, error) from error
        return out.getvalue()

    def decode(self, data: bytes, place: Place) -> Any:
        source = io.BytesIO(data)
        try:
            content = self._read(source, self._schema, None)
        except REFUSED as error:
            raise undecodable(data, place, error) from error
        if source.tell() != len(data):
            raise undecodable(data, place, f"{len(data) - source.tell()} bytes follow the data")
        return content if self._objects is None else self._objects.object(content, data, place)
