"""Names of the formats of keys and values, so that stores can be read without the application's code. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from barnabas.client.serdes.serde import Place
from barnabas.streams.errors import StreamsError
from barnabas.streams.serdes import (
    BYTES,
    DOUBLE,
    INTEGER,
    LONG,
    STR,
    Codec,
    Functions,
    Serde,
    SerdeLike,
    codec_of,
)

__all__ = ["codec_named", "format_of", "json_value", "key_from_text"]

DYNAMIC: Final = "dynamic"  # text, or JSON of what is no text
JSON: Final = "json"
CUSTOM: Final = "custom"
_PLAIN: Final[Mapping[str, Serde[Any]]] = MappingProxyType(
    {"str": STR, "bytes": BYTES, "long": LONG, "integer": INTEGER, "double": DOUBLE}
)
_NUMBERS: Final = {"long": int, "integer": int, "double": float}


def format_of(serde: SerdeLike[Any] | None) -> str:
    """The name of the format of a serde; ``custom`` if only the application's code can read it."""
    if serde is None:
        return DYNAMIC
    if serde is str:
        return "str"
    if serde is bytes:
        return "bytes"
    for name, known in _PLAIN.items():
        if serde is known:
            return name
    if isinstance(serde, Functions | Serde):
        return CUSTOM
    return JSON


def codec_named(name: str) -> Codec:
    """The codec of a format: ``custom`` values are returned as bytes."""
    if name == DYNAMIC:
        return codec_of(None, Place(""))
    if name == JSON:
        return Codec(msgspec.json.encode, msgspec.json.decode, msgspec.json.encode, msgspec.json.decode, False)
    return codec_of(_PLAIN.get(name, BYTES), Place(""))


def key_from_text(name: str, text: str) -> Any:
    """A key that was typed, as an object of a format. Raises StreamsError if it does not fit."""
    try:
        if name in _NUMBERS:
            return _NUMBERS[name](text)
        if name == JSON:
            return msgspec.json.decode(text)
    except (ValueError, msgspec.DecodeError) as error:
        raise StreamsError(f"the keys of the store are {name}; {text!r} cannot be read as {name}: {error}") from error
    return text if name in ("str", DYNAMIC) else text.encode()


def json_value(value: Any) -> Any:
    """A value that JSON can have: bytes are text if they are UTF-8, base64 otherwise; structs are objects."""
    if not isinstance(value, bytes):
        return msgspec.to_builtins(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
