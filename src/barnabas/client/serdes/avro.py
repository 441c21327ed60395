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


class Avro(Serde[Any]):
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = parsed(schema)
        fastavro = needed("fastavro", "avro")
        self._write, self._read = fastavro.schemaless_writer, fastavro.schemaless_reader

    def encode(self, content: Any, place: Place) -> bytes:
        out = io.BytesIO()
        try:
            self._write(out, self._schema, content)
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
        return content
