"""Converters between records and the bytes in topics: JSON, strings, bytes and numbers, under Kafka Connect's names."""

from __future__ import annotations

import struct
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

import msgspec

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.json_schemas import schema_from_json, schema_to_json, value_from_json, value_to_json
from barnabas.connect.plugins import MARK, Mark
from barnabas.connect.schemas import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    infer,
)

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_decode: Final = msgspec.json.Decoder().decode


class Converted(NamedTuple):
    """A value and its schema."""

    schema: Schema | None
    value: Any


class Converter:
    """Base of converters. ``is_key`` tells a key's converter from a value's."""

    Config: ClassVar[type[Config]] = Config

    def __init__(self, config: Any, *, is_key: bool = False) -> None:
        self.config = config
        self.is_key = is_key

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of a value; raise ``DataError`` if it does not fit."""
        raise NotImplementedError

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the value of bytes; raise ``DataError`` if they are not of this format."""
        raise NotImplementedError


def _converter(name: str, *aliases: str) -> Any:
    def mark(cls: type[Converter]) -> type[Converter]:
        setattr(cls, MARK, Mark(name, "converter", aliases))
        return cls

    return mark


class JsonConfig(Config):
    """Keys of the JSON converter."""

    schemas_enable: Annotated[bool, doc("Write and expect an object of schema and payload")] = True
    schemas_cache_size: Annotated[int, doc("Schemas whose JSON is kept in memory")] = 1000
    decimal_format: Annotated[Literal["BASE64", "NUMERIC"], doc("How decimals are written")] = "BASE64"
    replace_null_with_default: Annotated[bool, doc("Write a field's default instead of null")] = True


@_converter("org.apache.kafka.connect.json.JsonConverter", "json")
class JsonConverter(Converter):
    """``{"schema": …, "payload": …}``, or the payload alone with ``schemas.enable=false``."""

    Config = JsonConfig

    def __init__(self, config: JsonConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._known: dict[int, tuple[Schema, msgspec.Raw]] = {}

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return JSON; None stays None, so that it is a tombstone."""
        if value is None and (schema is None or not self.config.schemas_enable):
            return None
        try:
            use_default = self.config.replace_null_with_default
            payload = value_to_json(schema, value, self.config.decimal_format, use_default=use_default)
            if not self.config.schemas_enable:
                return _encode(payload)
            return _encode({"schema": None if schema is None else self._schema(schema), "payload": payload})
        except (msgspec.MsgspecError, TypeError) as error:
            raise DataError(f"the value cannot be written as JSON: {error}") from error

    def _schema(self, schema: Schema) -> msgspec.Raw:
        known = self._known.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._known) >= self.config.schemas_cache_size:
                self._known.clear()
            known = self._known[id(schema)] = (schema, msgspec.Raw(_encode(schema_to_json(schema))))
        return known[1]

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the payload with its schema, if it has one."""
        if data is None:
            return Converted(None, None)
        try:
            found = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"not JSON: {error}") from error
        if not self.config.schemas_enable:
            return Converted(None, found)
        if not isinstance(found, dict) or found.keys() != {"schema", "payload"}:
            raise DataError(
                "schemas.enable is true, so the JSON must be an object of exactly 'schema' and 'payload'; "
                "set schemas.enable=false to read plain JSON"
            )
        schema = schema_from_json(found["schema"])
        return Converted(schema, value_from_json(schema, found["payload"]))


class StringConfig(Config):
    """Keys of the string converter."""

    converter_encoding: Annotated[str, doc("Character encoding")] = msgspec.field(
        name="converter.encoding", default="UTF-8"
    )


@_converter("org.apache.kafka.connect.storage.StringConverter", "string")
class StringConverter(Converter):
    """Text; other values as Java would print them."""

    Config = StringConfig

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value's text."""
        return None if value is None else text_of(value).encode(self.config.converter_encoding)

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the text."""
        try:
            text = None if data is None else data.decode(self.config.converter_encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise DataError(f"not text in {self.config.converter_encoding}: {error}") from error
        return Converted(STRING.as_optional(), text)


def text_of(value: Any) -> str:
    """Return a value as text: JSON for structures, ``true`` and ``false`` for booleans."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, dict | list):
        return _encode(value_to_json(None, value)).decode()
    return str(value)


@_converter("org.apache.kafka.connect.converters.ByteArrayConverter", "bytes")
class ByteArrayConverter(Converter):
    """Bytes as they are."""

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes."""
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise DataError(f"the byte array converter takes bytes, not {type(value).__name__}")
        return None if value is None else bytes(value)

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the bytes."""
        return Converted(BYTES.as_optional(), data)


class _Number(Converter):
    """A number in as many bytes as its type has."""

    schema: ClassVar[Schema]
    layout: ClassVar[struct.Struct]

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the big-endian bytes."""
        try:
            return None if value is None else self.layout.pack(value)
        except (struct.error, OverflowError) as error:
            raise DataError(f"{value!r} is not a {self.schema.type}") from error

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return the number."""
        if data is None:
            return Converted(self.schema.as_optional(), None)
        if len(data) != self.layout.size:
            raise DataError(f"a {self.schema.type} has {self.layout.size} bytes, not {len(data)}")
        return Converted(self.schema.as_optional(), self.layout.unpack(data)[0])


def _number(name: str, schema: Schema, layout: str) -> type[Converter]:
    full = f"org.apache.kafka.connect.converters.{name}Converter"
    parts = {"schema": schema, "layout": struct.Struct(layout), "__module__": __name__}
    made: type[Converter] = _converter(full, name.lower())(type(f"{name}Converter", (_Number,), parts))
    return made


ShortConverter: Final = _number("Short", INT16, ">h")
IntegerConverter: Final = _number("Integer", INT32, ">i")
LongConverter: Final = _number("Long", INT64, ">q")
FloatConverter: Final = _number("Float", FLOAT32, ">f")
DoubleConverter: Final = _number("Double", FLOAT64, ">d")
BooleanConverter: Final = _number("Boolean", BOOLEAN, ">?")


@_converter("org.apache.kafka.connect.storage.SimpleHeaderConverter", "simple")
class SimpleConverter(Converter):
    """Headers as text: what looks like JSON is read as such, everything else is a string."""

    def to_bytes(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value's text."""
        return None if value is None else text_of(value).encode()

    def from_bytes(self, topic: str, data: bytes | None) -> Converted:
        """Return a number, a boolean, a list or an object if the text is one, else the text."""
        if data is None:
            return Converted(None, None)
        text = data.decode(errors="replace")
        try:
            value = _decode(text)
        except msgspec.DecodeError:
            return Converted(STRING, text)
        return Converted(infer(value), value) if value is not None else Converted(None, None)
