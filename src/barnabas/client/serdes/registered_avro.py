"""Avro in Confluent's wire format: read with the schema that it was written with, and turned into ours.

Needs fastavro. Without a schema of its own a serde only reads, and gives what the writer wrote.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from barnabas.client.errors import Unencodable
from barnabas.client.serdes.avro import REFUSED, AvroSchema, parsed, typed
from barnabas.client.serdes.registered import IdIn, Registered, SubjectOf, topic_name
from barnabas.client.serdes.registry import Reference, Registry, Schema
from barnabas.client.serdes.serde import NotReady, Place, needed, undecodable, unencodable


class RegisteredAvro(Registered[Any]):
    """``schema`` is a schema or a type: a dataclass, a msgspec struct. ``references`` are schemas that it uses."""

    def __init__(
        self,
        registry: Registry,
        schema: AvroSchema | type | None = None,
        *,
        references: Sequence[Reference] = (),
        subject: SubjectOf = topic_name,
        auto_register: bool = True,
        id_in: IdIn = "prefix",
    ) -> None:
        super().__init__(registry, subject=subject, auto_register=auto_register, id_in=id_in)
        schema, self._objects = typed(schema)
        self._references = tuple(references)
        fastavro = needed("fastavro", "avro")
        self._write, self._read = fastavro.schemaless_writer, fastavro.schemaless_reader
        self._own = None if schema is None or self._references else parsed(schema)
        self._said = schema
        self._text = schema if isinstance(schema, str) else json.dumps(schema)
        self._writers: dict[int | str, Any] = {}

    def encode(self, content: Any, place: Place) -> bytes:
        if self._said is None:
            raise unencodable(content, place, "this serde was made without a schema")
        if self._own is None:
            raise NotReady(self._learn_own)
        out = io.BytesIO()
        out.write(self._head(place))
        plain = content if self._objects is None else self._objects.plain(content, place)
        try:
            self._write(out, self._own, plain)
        except REFUSED as error:
            raise unencodable(content, place, error) from error
        return out.getvalue()

    def _decode(self, schema_id: int | str, rest: bytes, place: Place) -> Any:
        if self._own is None and self._said is not None:
            raise NotReady(self._learn_own)
        writer = self._writers.get(schema_id)
        if writer is None:
            raise NotReady(lambda: self._learn(schema_id, rest, place))
        source = io.BytesIO(rest)
        try:
            content = self._read(source, writer, self._own)
        except REFUSED as error:
            raise undecodable(rest, place, error) from error
        if source.tell() != len(rest):
            raise undecodable(rest, place, f"{len(rest) - source.tell()} bytes follow the data")
        return content if self._objects is None else self._objects.object(content, rest, place)

    async def _learn_own(self) -> None:
        """The schema with those that it refers to, which the registry has."""
        try:
            self._own = await parsed_with_references(self.registry, await self._schema(), {})
        except REFUSED as error:
            raise Unencodable(f"the schema is not Avro: {error}") from error

    async def _learn(self, schema_id: int | str, data: bytes, place: Place) -> None:
        schema = await self._writer(schema_id, data, place)
        try:
            self._writers[schema_id] = await parsed_with_references(self.registry, schema, {})
        except REFUSED as error:
            raise undecodable(data, place, f"schema {schema_id} is not Avro: {error}") from error

    async def _schema(self) -> Schema:
        return Schema(self._text, "AVRO", self._references)

    def _record_name(self) -> str:
        name = self._own.get("name", "") if isinstance(self._own, dict) else self._own
        return str(name)


async def parsed_with_references(registry: Registry, schema: Schema, named: dict[str, Any]) -> Any:
    """A schema may use types that other subjects define; those come first. ``named`` gets every type with a name.

    One of ``REFUSED`` for what is not Avro, however deep it lies.
    """
    fastavro = needed("fastavro", "avro")
    seen: set[tuple[str, int]] = set()

    async def parse(schema: Schema) -> Any:
        for reference in schema.references:
            where = (reference.subject, reference.version)
            if where not in seen:  # two may use the same, and hostile ones each other
                seen.add(where)
                await parse((await registry.version(*where)).schema)
        return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)

    try:
        return await parse(schema)
    except fastavro.schema.SchemaParseException as error:
        raise ValueError(str(error)) from error
