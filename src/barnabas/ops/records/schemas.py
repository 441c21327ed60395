"""Schemas of a registry put to use: data in Confluent's wire format to what JSON can hold, and back.

Whatever kind a schema is of, a :class:`Codec` goes both ways between the bytes behind the id and a value of JSON; it
is made once for each schema. The serdes beneath are the client's; ``decoding.py`` and ``encoding.py`` call this.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Final

from barnabas.client.errors import RegistryRefused, RegistryUnreachable, Undecodable, Unencodable
from barnabas.client.serdes.avro import REFUSED, Avro
from barnabas.client.serdes.json import Json
from barnabas.client.serdes.registered import NOT_FOUND, topic_name
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import Place, unencodable
from barnabas.ops.records.avro_json import meant, shown

ASK_AGAIN_SECONDS: Final = 5.0  # for a schema that the registry did not know
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"


class Codec(ABC):
    """Between bytes behind a schema's id and a value of JSON."""

    @abstractmethod
    def decode(self, data: bytes, place: Place) -> Any:
        """:class:`Undecodable` if the bytes are not of this schema."""

    @abstractmethod
    def encode(self, said: Any, place: Place) -> bytes:
        """:class:`Unencodable` if the value is not of this schema."""


class AvroCodec(Codec):
    def __init__(self, parsed: Any, named: dict[str, Any]) -> None:
        self._serde = Avro(parsed)
        self._parsed = parsed
        self._named = named

    def decode(self, data: bytes, place: Place) -> Any:
        return shown(self._serde.decode(data, place))

    def encode(self, said: Any, place: Place) -> bytes:
        try:
            content = meant(said, self._parsed, self._named)
        except (ArithmeticError, *REFUSED) as error:
            raise unencodable(said, place, error) from error
        return self._serde.encode(content, place)


class JsonCodec(Codec):
    """What a JSON Schema asks for is not checked: the data is what it says anyway."""

    def __init__(self) -> None:
        self._serde = Json()

    def decode(self, data: bytes, place: Place) -> Any:
        return self._serde.decode(data, place)

    def encode(self, said: Any, place: Place) -> bytes:
        return self._serde.encode(said, place)


class Schemas:
    def __init__(self, registry: Registry, *, is_guess: bool = False) -> None:
        """``is_guess`` says that nobody named the registry: then one that does not answer is no failure."""
        self._registry = registry
        self._is_guess = is_guess
        self._codecs: dict[tuple[int, str | None], tuple[str, Codec]] = {}
        self._unknown: dict[int, float] = {}

    async def codec(self, schema_id: int, *, message: str | None = None) -> tuple[str, Codec]:
        """The kind of a schema, and its codec; :class:`Undecodable` if there is none.

        ``message`` is the name of the message to write, where a Protobuf file has several.
        """
        known = self._codecs.get((schema_id, message))
        if known is None:
            known = self._codecs[schema_id, message] = await self._make(schema_id, message)
        return known

    async def register(self, place: Place, schema: Schema) -> int:
        """The id of a schema, which is registered for a topic's keys or values."""
        return await self._registry.register(topic_name(place, ""), schema)

    async def latest(self, place: Place) -> int:
        """The id of the last version of the schema that belongs to a topic's keys or values."""
        subject = topic_name(place, "")
        try:
            return (await self._registry.version(subject)).id
        except RegistryRefused as error:
            if error.status == NOT_FOUND:
                raise Unencodable(f"the registry has no subject {subject!r}: register a schema there first") from error
            raise

    async def _make(self, schema_id: int, message: str | None) -> tuple[str, Codec]:
        now = asyncio.get_running_loop().time()
        if now < self._unknown.get(schema_id, now):
            raise Undecodable(f"the registry knows no schema {schema_id}")
        try:
            schema = await self._registry.schema(schema_id)
        except RegistryRefused as error:
            if error.status == NOT_FOUND:
                self._unknown[schema_id] = now + ASK_AGAIN_SECONDS
                raise Undecodable(f"the registry knows no schema {schema_id}") from error
            raise
        except RegistryUnreachable as error:
            if not self._is_guess:
                raise
            self._unknown[schema_id] = now + ASK_AGAIN_SECONDS
            raise Undecodable(
                f"it may have been written with schema {schema_id}: --schema-registry says where to ask"
            ) from error
        return schema.kind, await self._codec_of(schema, schema_id, message)

    async def _codec_of(self, schema: Schema, schema_id: int, message: str | None) -> Codec:
        if schema.kind == AVRO:
            from barnabas.client.serdes.registered_avro import parsed_with_references

            named: dict[str, Any] = {}
            try:
                return AvroCodec(await parsed_with_references(self._registry, schema, named), named)
            except REFUSED as error:
                raise Undecodable(f"schema {schema_id} is not Avro: {error}") from error
        if schema.kind == PROTOBUF:
            from barnabas.ops.records.schemas_protobuf import protobuf_codec

            return await protobuf_codec(self._registry, schema_id, message)
        if schema.kind == JSON:
            return JsonCodec()
        raise Undecodable(f"schema {schema_id} is {schema.kind!r}, which nothing here can read")
