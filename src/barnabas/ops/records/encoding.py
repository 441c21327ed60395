"""``produce --schema-id``: JSON that was read becomes data of a registered schema, with the schema's id before it.

The schema must be there: nothing is registered by the way. ``schemas.py`` knows how each kind is written.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.errors import Undecodable, Unencodable
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.serdes.registry import Schema
    from barnabas.client.serdes.serde import Place
    from barnabas.ops.records.schemas import Codec, Schemas

BY_TOPIC: Final = "topic"
KINDS: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
SUFFIXES: Final = ".avsc (Avro), .json (JSON Schema) or .proto (Protobuf)"


class Wanted(NamedTuple):
    """Which schema: its id, or None for the last one that belongs to the topic; and which of its messages."""

    schema_id: int | None
    message: str | None
    schema: Schema | None = None  # of a file, which is registered for the topic


def add_schemas(parser: ArgumentParser) -> None:
    add = parser.add_argument
    names = f"N, or {BY_TOPIC} for the last version of the subject TOPIC-"
    add("--schema", metavar="FILE", help=f"values are JSON, encoded by this schema, which is registered: {SUFFIXES}")
    add("--schema-id", metavar="ID", help=f"values are JSON, encoded by this schema: {names}value")
    add("--schema-topic", dest="schema_id", action="store_const", const=BY_TOPIC, help=f"--schema-id {BY_TOPIC}")
    add("--schema-key-id", metavar="ID", help=f"the same for keys: {names}key")
    add("--schema-type", metavar="NAME", help="which message of a Protobuf schema (default: the first)")
    add("--schema-key-type", metavar="NAME", help="the same for keys")


def wants_schemas(arguments: Namespace) -> bool:
    for name in ("", "key-"):
        kind = getattr(arguments, f"schema_{name.replace('-', '_')}type")
        is_file = name == "" and arguments.schema is not None
        if kind is not None and getattr(arguments, f"schema_{name.replace('-', '_')}id") is None and not is_file:
            raise Failure(f"--schema-{name}type says which message of --schema-{name}id: give that too")
    if arguments.schema is not None and arguments.schema_id is not None:
        raise Failure("pass --schema or --schema-id, not both")
    return any(each is not None for each in (arguments.schema, arguments.schema_id, arguments.schema_key_id))


def schema_of_file(path: str, kind: str | None = None) -> Schema:
    """The schema of a file; its kind is that of its suffix unless it is given."""
    from pathlib import Path

    from barnabas.client.serdes.registry import Schema

    found = kind or KINDS.get(Path(path).suffix.lower())
    if found is None:
        raise Failure(f"{path}: the kind of schema is not known; name the file {SUFFIXES}")
    try:
        return Schema(Path(path).read_text(), found)  # type: ignore[arg-type]
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def wanted(text: str | None, message: str | None, file: str | None = None) -> Wanted | None:
    if file is not None:
        return Wanted(None, message, schema_of_file(file))
    if text is None:
        return None
    if text == BY_TOPIC:
        return Wanted(None, message)
    if not (text.isascii() and text.isdigit()):
        raise Failure(f"{text!r} is no id of a schema: say a number, or {BY_TOPIC}")
    return Wanted(int(text), message)


class Encoder:
    def __init__(self, schemas: Schemas, *, key: Wanted | None, value: Wanted | None) -> None:
        self._schemas = schemas
        self._key = key
        self._value = value
        self._latest: dict[Place, int] = {}

    async def encode(self, topic: str, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Nulls stay nulls; Failure for what is not of its schema."""
        from barnabas.client.serdes.serde import Place

        if self._key is not None and key is not None:
            key = await self._encoded(key, self._key, Place(topic, is_key=True))
        if self._value is not None and value is not None:
            value = await self._encoded(value, self._value, Place(topic))
        return key, value

    async def _encoded(self, data: bytes, schema: Wanted, place: Place) -> bytes:
        from barnabas.client.serdes.registered import head_of

        try:
            schema_id = await self._id(place, schema.schema) if schema.schema_id is None else schema.schema_id
            _, codec = await self._schemas.codec(schema_id, message=schema.message)
            return head_of(schema_id) + _written(codec, data, place)
        except (Undecodable, Unencodable) as error:
            raise Failure(f"{_shown(data)}: {error}") from error

    async def _id(self, place: Place, schema: Schema | None) -> int:
        """What the subject says when its first record is written holds for all of them."""
        if place not in self._latest:
            latest = self._schemas.latest(place) if schema is None else self._schemas.register(place, schema)
            self._latest[place] = await latest
        return self._latest[place]


def _written(codec: Codec, data: bytes, place: Place) -> bytes:
    """A key that is not JSON of its schema may be plain text: most keys are, and nobody writes quotes around them."""
    try:
        try:
            said = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Unencodable(f"{place}: this is not JSON: {error}") from error
        return codec.encode(said, place)
    except Unencodable as refused:
        if not place.is_key or data[:1] in (b"{", b"[", b'"'):
            raise
        try:
            return codec.encode(data.decode(), place)
        except (Unencodable, UnicodeDecodeError):
            raise refused from None


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
