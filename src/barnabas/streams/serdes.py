"""Serdes of keys and values: what a type, a serde of the client or a pair of functions means as functions on bytes.

A :class:`Codec` has two faces. ``encode`` and ``decode`` are the bytes that other programs see: output topics,
changelog topics, the input of the partitioner. ``pack`` and ``unpack`` are the bytes of the state and of
repartitioned records. They are the same functions if the type is known. Without a type a codec is *dynamic*: a
``str`` is written as UTF-8, ``bytes`` as they are, everything else as JSON; packed, it is MessagePack, which keeps
the types apart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from barnabas.client.serdes.plain import BYTES, DOUBLE, INTEGER, LONG, STR
from barnabas.client.serdes.serde import Place, Serde
from barnabas.client.serdes.structs import Struct as Json
from barnabas.streams.errors import TopologyError
from barnabas.streams.windows import Windowed

__all__ = [
    "BYTES",
    "DOUBLE",
    "INTEGER",
    "LONG",
    "STR",
    "Codec",
    "Functions",
    "Json",
    "Serde",
    "SerdeLike",
    "WindowedSerde",
    "codec_of",
    "plain",
]

T = TypeVar("T")
Encode: TypeAlias = Callable[[Any], bytes]
Decode: TypeAlias = Callable[[bytes], Any]


class Functions(NamedTuple, Generic[T]):
    """A serde made of two functions: one from the object to bytes, one from bytes to the object."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]


@dataclass(frozen=True)
class WindowedSerde:
    """Serde of a windowed key, in Kafka's layout: the key, then the start, or the end and the start of a session."""

    inner: SerdeLike[Any] | None
    size_ms: int
    is_session: bool


# ``type[T]`` covers classes; annotations such as ``list[int]`` are accepted too, as ``Any`` to a type checker.
SerdeLike: TypeAlias = type[T] | Serde[T] | Functions[T] | WindowedSerde


class Codec(NamedTuple):
    """Functions between an object and its bytes; see the module."""

    encode: Encode
    decode: Decode
    pack: Encode
    unpack: Decode
    is_dynamic: bool


_START: Final = struct.Struct(">q")
_SESSION: Final = struct.Struct(">qq")
_TUPLE_EXT: Final = 1
_json_encode: Final = msgspec.json.Encoder().encode
_msgpack_encode: Final = msgspec.msgpack.Encoder().encode


def _identity(data: Any) -> Any:
    return data


def _as_bytes(content: Any) -> bytes:
    if type(content) is bytes:
        return content
    if isinstance(content, bytearray | memoryview):
        return bytes(content)
    raise TypeError(f"expected bytes, not {type(content).__name__}")


def _encode_dynamic(content: Any) -> bytes:
    kind = type(content)
    if kind is str:
        return str.encode(content)
    if kind is bytes:
        return content  # type: ignore[no-any-return]
    return _json_encode(content)


def plain(content: Any) -> Any:
    """Return content that MessagePack gives back with the same types, or raise :class:`TypeError` with what to do."""
    kind = type(content)
    if content is None or kind in (str, int, float, bool, bytes):
        return content
    if kind is list:
        return [plain(each) for each in content]
    if kind is dict:
        return {plain(key): plain(value) for key, value in content.items()}
    if isinstance(content, tuple):
        if kind is not tuple and kind is not Windowed:
            raise TypeError(f"a {kind.__name__} needs a type to be restored; pass value={kind.__name__}")
        return msgspec.msgpack.Ext(_TUPLE_EXT, _msgpack_encode([plain(each) for each in content]))
    raise TypeError(
        f"an object of type {kind.__name__} cannot be kept without a type; pass key= or value= with the type, "
        f"for example value={kind.__name__}"
    )


def _pack_dynamic(content: Any) -> bytes:
    kind = type(content)
    if kind is str or kind is int:
        return _msgpack_encode(content)
    return _msgpack_encode(plain(content))


def _tuple_hook(code: int, data: memoryview) -> Any:
    if code != _TUPLE_EXT:
        raise ValueError(f"unknown extension {code}")
    return tuple(_unpack_dynamic(data))


_unpack_dynamic: Final = msgspec.msgpack.Decoder(ext_hook=_tuple_hook).decode


def _decode_dynamic(data: bytes) -> Any:
    """JSON if it is JSON, otherwise text, otherwise bytes: the best that can be done without a type."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


def _typed(encode: Encode, decode: Decode) -> Codec:
    return Codec(encode, decode, encode, decode, is_dynamic=False)


_DYNAMIC: Final = Codec(_encode_dynamic, _decode_dynamic, _pack_dynamic, _unpack_dynamic, is_dynamic=True)
_TEXT: Final = _typed(str.encode, bytes.decode)
_RAW: Final = _typed(_as_bytes, _identity)


def _of_windowed(serde: WindowedSerde, place: Place) -> Codec:
    inner = codec_of(serde.inner, place)
    size = serde.size_ms

    def to_bytes(inner_encode: Encode) -> Encode:
        if serde.is_session:
            return lambda window: inner_encode(window[0]) + _SESSION.pack(window[2], window[1])
        return lambda window: inner_encode(window[0]) + _START.pack(window[1])

    def from_bytes(inner_decode: Decode) -> Decode:
        def of_session(data: bytes) -> Windowed[Any]:
            end, start = _SESSION.unpack_from(data, len(data) - 16)
            return Windowed(inner_decode(data[:-16]), start, end)

        def of_time(data: bytes) -> Windowed[Any]:
            (start,) = _START.unpack_from(data, len(data) - 8)
            return Windowed(inner_decode(data[:-8]), start, start + size)

        return of_session if serde.is_session else of_time

    return Codec(
        to_bytes(inner.encode),
        from_bytes(inner.decode),
        to_bytes(inner.pack),
        from_bytes(inner.unpack),
        inner.is_dynamic,
    )


def _of_type(kind: Any) -> Codec:
    if kind is str:
        return _TEXT
    if kind is bytes:
        return _RAW
    if hasattr(kind, "model_validate_json"):  # a Pydantic model
        return _typed(lambda model: model.model_dump_json().encode(), kind.model_validate_json)
    try:
        decoder = msgspec.json.Decoder(kind)
    except TypeError as error:
        raise TopologyError(f"{kind!r} is not a type that can be read from JSON: {error}; pass a serde") from error
    return _typed(_json_encode, decoder.decode)


def codec_of(serde: SerdeLike[Any] | None, place: Place) -> Codec:
    """Return the codec that a type, a serde, a pair of functions or None (a dynamic codec) stands for.

    place: the topic, and whether keys or values are meant; serdes with a registry choose the subject by it.
    """
    if serde is None:
        return _DYNAMIC
    if isinstance(serde, WindowedSerde):
        return _of_windowed(serde, place)
    if isinstance(serde, Functions):
        return _typed(serde.encode, serde.decode)
    if serde is STR:
        return _TEXT
    if serde is BYTES:
        return _RAW
    if isinstance(serde, Serde):
        from barnabas.streams.registry_serdes import waiting

        return _typed(waiting(serde.encode, place), waiting(serde.decode, place))
    return _of_type(serde)
