"""``consume --decode``: what the bytes of keys and values say, as text that formats and filters go on with.

``auto`` looks at each record: data with a schema's id before it is what the registry says, text is text, and what is
neither is shown as bytes in hexadecimal. What cannot be decoded stays as it is and carries the reason; ``consume.py``
says it. How a registry's schemas are read is in ``schemas.py``.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.client.errors import MissingDependency, Undecodable
from barnabas.client.serdes.json import Json
from barnabas.client.serdes.plain import STR
from barnabas.client.serdes.registered import MAGIC, split
from barnabas.client.serdes.serde import Place, Serde, needed, undecodable
from barnabas.ops.records.avro_json import shown
from barnabas.ops.records.format import Decoded

if TYPE_CHECKING:
    from barnabas.client.record import ConsumerRecord
    from barnabas.ops.records.format import Line
    from barnabas.ops.records.schemas import Schemas

    R = TypeVar("R", ConsumerRecord[bytes, bytes], Line)
else:
    R = TypeVar("R")

HEAD_BYTES: Final = 5
DEPTH_MAX: Final = 100
TOO_DEEP: Final = f"it is nested more than {DEPTH_MAX} levels deep"
KINDS: Final = {"avro": "AVRO", "proto": "PROTOBUF"}
FORMS: Final = {"AVRO": "avro", "PROTOBUF": "proto", "JSON": "json"}
EXTRAS: Final = {"avro": ("fastavro", "avro"), "proto": ("google.protobuf.message", "protobuf")}


class Decoder:
    """``key`` and ``value`` are the names of forms; None leaves bytes alone."""

    def __init__(self, key: str | None, value: str | None, schemas: Schemas | None) -> None:
        self._key = key
        self._value = value
        self._schemas = schemas
        self._places: dict[str, tuple[Place, Place]] = {}
        self._msgpack: Serde[Any] | None = None
        for form in {key, value} & set(EXTRAS):
            needed(*EXTRAS[form])  # type: ignore[index]
        if "msgpack" in (key, value):
            self._msgpack = _msgpack()

    async def decode(self, records: Sequence[R]) -> list[R]:
        decoded = []
        for record in records:
            key_place, value_place = self._places_of(record.topic)
            key, value = record.key, record.value
            if self._key is not None and key is not None:
                key = await self._decoded(key, self._key, key_place)
            if self._value is not None and value is not None:
                value = await self._decoded(value, self._value, value_place)
            decoded.append(record._replace(key=key, value=value))
        return decoded

    def _places_of(self, topic: str) -> tuple[Place, Place]:
        found = self._places.get(topic)
        if found is None:
            found = self._places[topic] = (Place(topic, is_key=True), Place(topic))
        return found

    async def _decoded(self, data: bytes, form: str, place: Place) -> Decoded:
        try:
            if form == "auto":
                return await self._recognised(data, place)
            if form in KINDS:
                return await self._registered(data, place, wanted=form)
            if form == "msgpack":
                assert self._msgpack is not None
                return _said(form, shown(self._msgpack.decode(data, place), _base64), data)
            return _PLAIN[form](data, place)
        except (Undecodable, MissingDependency) as error:
            return Decoded.failed(data, str(error).removeprefix(f"{place}: "))
        except RecursionError:
            return Decoded.failed(data, TOO_DEEP)

    async def _registered(self, data: bytes, place: Place, *, wanted: str | None = None) -> Decoded:
        schema_id, rest = split(data, place)
        assert self._schemas is not None
        kind, codec = await self._schemas.codec(schema_id)
        if wanted is not None and kind != KINDS[wanted]:
            raise undecodable(data, place, f"schema {schema_id} is {kind}, and not {KINDS[wanted]}")
        return _said(FORMS[kind], codec.decode(rest, place), data, schema_id=schema_id)

    async def _recognised(self, data: bytes, place: Place) -> Decoded:
        """What it is said to be, else what it looks like, else its bytes."""
        failed = ""
        if len(data) > HEAD_BYTES and data[0] == MAGIC and (schema_id := split(data, place)[0]):
            if self._schemas is None:
                failed = f"it may have been written with schema {schema_id}: --schema-registry says where to ask"
            else:
                try:
                    return await self._registered(data, place)
                except (Undecodable, MissingDependency) as error:
                    failed = str(error).removeprefix(f"{place}: ")
        found = _looks_like(data, place) or self._packed(data, place)
        if found is None:
            found = _hex(data, place)
            found.error = failed or None
        return found

    def _packed(self, data: bytes, place: Place) -> Decoded | None:
        """MessagePack, if it is a map or an array from its first byte to its last: any byte is a number there."""
        first = data[0] if data else 0
        if not (0x80 <= first <= 0x9F or 0xDC <= first <= 0xDF):
            return None
        try:
            serde = self._msgpack = self._msgpack or _msgpack()
            return _said("msgpack", shown(serde.decode(data, place), _base64), data)
        except (Undecodable, MissingDependency):
            return None


def _looks_like(data: bytes, place: Place) -> Decoded | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text[:1] in ("{", "["):
        try:
            return _json(data, place)
        except Undecodable:
            pass
    is_text = all(character.isprintable() or character in "\n\r\t" for character in text)
    return Decoded.of("string", text, data, data) if is_text else None


def _said(form: str, content: Any, raw: bytes, *, schema_id: int | None = None) -> Decoded:
    """Text as it is, everything else as JSON; half a character, which no text can hold, as its escape."""
    _check_depth(content)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return Decoded.of(form, content, text.encode(errors="backslashreplace"), raw, schema_id=schema_id)


def _check_depth(content: Any) -> None:
    """What is nested deeper than anybody means could be read here, and not be written any more."""
    level = [content]
    for _ in range(DEPTH_MAX):
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return
        level = [child for each in inner for child in (each.values() if isinstance(each, dict) else each)]
    raise Undecodable(TOO_DEEP)


def _json(data: bytes, place: Place) -> Decoded:
    """With a schema's id before it, or without; no registry needs to be asked."""
    schema_id, content = split(data, place) if data[:1] == bytes([MAGIC]) else (None, data)
    return _said("json", Json().decode(content, place), data, schema_id=schema_id)


def _string(data: bytes, place: Place) -> Decoded:
    return Decoded.of("string", STR.decode(data, place), data, data)


def _hex(data: bytes, _: Place) -> Decoded:
    return _said("hex", data.hex(), data)


def _in_base64(data: bytes, _: Place) -> Decoded:
    return _said("base64", _base64(data), data)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _msgpack() -> Serde[Any]:
    from barnabas.client.serdes.structs import Struct

    return Struct(Any, layout="msgpack")


_PLAIN: Final[dict[str, Callable[[bytes, Place], Decoded]]] = {
    "json": _json,
    "string": _string,
    "hex": _hex,
    "base64": _in_base64,
}
