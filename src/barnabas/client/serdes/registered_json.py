"""JSON in Confluent's wire format. The schema is registered and named in each record; the data is plain JSON.

With a type, msgspec checks what is read and writes its schema; without one, objects are what Python's JSON makes of
them, nothing is checked, and the schema must be given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, cast

from barnabas.client.serdes.json import Json
from barnabas.client.serdes.registered import IdIn, Registered, SubjectOf, topic_name
from barnabas.client.serdes.registry import Registry, Schema
from barnabas.client.serdes.serde import Place, Serde, T, needed, unencodable
from barnabas.client.serdes.structs import Struct


class RegisteredJson(Registered[T], Generic[T]):
    def __init__(
        self,
        registry: Registry,
        kind: type[T] | None = None,
        *,
        schema: str | Mapping[str, Any] | None = None,
        subject: SubjectOf = topic_name,
        auto_register: bool = True,
        id_in: IdIn = "prefix",
    ) -> None:
        super().__init__(registry, subject=subject, auto_register=auto_register, id_in=id_in)
        self._inner: Serde[T] = Json() if kind is None else Struct(kind)
        if schema is None and kind is not None:
            schema = _schema_of(kind)
        self._said = cast("dict[str, Any] | None", json.loads(schema) if isinstance(schema, str) else schema)

    def encode(self, content: T, place: Place) -> bytes:
        if self._said is None:
            raise unencodable(content, place, "this serde was made without a schema")
        return self._head(place) + self._inner.encode(content, place)

    def _decode(self, schema_id: int | str, rest: bytes, place: Place) -> T:
        return self._inner.decode(rest, place)

    async def _schema(self) -> Schema:
        return Schema(json.dumps(self._said), "JSON")

    def _record_name(self) -> str:
        return str((self._said or {}).get("title", ""))


def _schema_of(kind: type) -> dict[str, Any]:
    """A type's own schema, with the type's definition at the top as others expect it."""
    said: dict[str, Any] = needed("msgspec", "structs").json.schema(kind)
    definitions = said.get("$defs", {})
    top = said.pop("$ref", "").rpartition("/")[2]
    if top:
        said = {**definitions[top], **said}
    return said
