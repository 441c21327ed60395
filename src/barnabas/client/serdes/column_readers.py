"""Makes readers of typed columns: of a schema of any kind, of a subject, of a type."""

from __future__ import annotations

import json
from typing import Final

from barnabas.client.serdes.avro import AvroSchema, typed
from barnabas.client.serdes.columns import ColumnReader, TypedColumns
from barnabas.client.serdes.columns_avro import AvroReader
from barnabas.client.serdes.columns_json import JsonReader
from barnabas.client.serdes.columns_protobuf import ProtobufReader
from barnabas.client.serdes.registry import LOCAL_URL, Registry, Schema
from barnabas.model.errors import BarnabasError

LATEST: Final = "latest"


async def reader_of(registry: Registry, schema: Schema, schema_id: int | None = None) -> ColumnReader:
    """The reader of a schema of any kind; ``schema_id`` is its id, which Protobuf needs."""
    if schema.kind == "AVRO":
        return await AvroReader.of(registry, schema)
    if schema.kind == "JSON":
        return JsonReader(schema.text)
    if schema_id is None:
        raise BarnabasError("columns of Protobuf messages need a schema of the registry: pass a subject")
    return await ProtobufReader.of(registry, schema_id)


async def reader_of_subject(registry: Registry, subject: str, version: int | None = None) -> ColumnReader:
    """The reader of a subject's version, by default the latest."""
    found = await registry.version(subject, "latest" if version is None else version)
    return await reader_of(registry, found.schema, found.id)


async def typed_columns(registry: Registry | str | None, schema: AvroSchema | type, subject: str) -> TypedColumns:
    """Columns of an Avro schema, of a dataclass or struct, or with ``"latest"`` of the subject's latest version."""
    found = registry if isinstance(registry, Registry) else Registry(registry or LOCAL_URL)
    if schema == LATEST:
        return TypedColumns(found, await reader_of_subject(found, subject))
    said, _ = typed(schema)
    text = said if isinstance(said, str) and said.lstrip()[:1] in ("{", "[", '"') else json.dumps(said)
    return TypedColumns(found, await reader_of(found, Schema(text)))
