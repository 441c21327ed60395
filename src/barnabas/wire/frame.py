"""Frames and headers: what stands around a message on a connection.

A frame is an int32 size and that many bytes; reading frames off a socket is the transport's business, so decoding
starts behind the size while encoding writes it. The header of a request must be read before its message can be, by
the table in ``barnabas.wire.api``. Responses to ApiVersions have the old header in every version, because a client
that asks does not yet know what the broker understands.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Final, NamedTuple, TypeAlias, TypeVar

from barnabas.model.errors import Malformed
from barnabas.wire.api import FLEXIBLE_SINCE, ApiKey
from barnabas.wire.message import Message, decode_from, encode_behind, encode_in_steps
from barnabas.wire.primitives import STRING_BYTES_MAX, Buffer, SizedPart, Unencodable, part_size, skip_tags

Part: TypeAlias = Buffer | SizedPart
M = TypeVar("M", bound=Message)

FRAME_BYTES_MAX: Final = 2**31 - 1

_SIZE: Final = struct.Struct(">i")
_REQUEST_HEADER: Final = struct.Struct(">hhih")
_SIZED_REQUEST_HEADER: Final = struct.Struct(">ihhih")
_SIZED_RESPONSE_HEADER: Final = struct.Struct(">ii")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_new_header = tuple.__new__  # half the cost of the constructor, once per request


def decode_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """The header of a frame (without its size) and the position of the message behind it."""
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    try:
        api_key, api_version, correlation_id, length = _REQUEST_HEADER.unpack_from(view)
        flexible_since = FLEXIBLE_SINCE[api_key]
        position = _REQUEST_HEADER.size
        client_id = None
        if length >= 0:
            start, position = position, position + length
            client_id = view[start:position].tobytes().decode()
        if api_version >= flexible_since:
            # Kafka's clients send no tagged fields in a header, so there is one byte to look at.
            position = position + 1 if view[position] == 0 else skip_tags(view, position)
    except KeyError as error:
        raise Malformed(f"there is no API with the number {error.args[0]}") from None
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise Malformed(f"a request header cannot be read: {error}") from error
    if position > len(view):
        raise Malformed("a request header ends too early")
    return _new_header(RequestHeader, (api_key, api_version, correlation_id, client_id)), position


def encode_request(message: Message, version: int, *, correlation_id: int, client_id: str | None) -> list[Part]:
    """A whole request frame, size included."""
    api_key = type(message).api_key
    assert api_key is not None, "only a request of an API can be sent"
    name = b"" if client_id is None else client_id.encode()
    if len(name) > STRING_BYTES_MAX:
        raise Unencodable(f"a client id of {len(name)} bytes is too long")
    length = -1 if client_id is None else len(name)
    out = bytearray(_SIZED_REQUEST_HEADER.pack(0, api_key, version, correlation_id, length))
    out += name
    if message.is_flexible(version):
        out.append(0)
    return _framed(message, version, out)


def encode_response(message: Message, version: int, *, correlation_id: int) -> list[Part]:
    """A whole response frame, size included."""
    return _framed(message, version, _response_header(message, version, correlation_id))


def encode_response_in_steps(
    message: Message, version: int, *, correlation_id: int
) -> Generator[None, None, list[Part]]:
    """As ``encode_response``, but a generator that yields after every few structs."""
    parts: list[Part] = []
    out = _response_header(message, version, correlation_id)
    tail = yield from encode_in_steps(message, version, out, parts)
    return _sized(out, parts, tail)


def _response_header(message: Message, version: int, correlation_id: int) -> bytearray:
    out = bytearray(_SIZED_RESPONSE_HEADER.pack(0, correlation_id))
    if message.flexible_since <= version and type(message).api_key is not ApiKey.API_VERSIONS:
        out.append(0)
    return out


def _framed(message: Message, version: int, out: bytearray) -> list[Part]:
    """The message behind its header, and the size at the front once it is known."""
    parts: list[Part] = []
    return _sized(out, parts, encode_behind(message, version, out, parts))


def _sized(out: bytearray, parts: list[Part], tail: bytearray) -> list[Part]:
    if not parts:
        _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
        return [out]
    if tail:
        parts.append(tail)
    size_bytes = sum(part_size(part) for part in parts) - _SIZE.size
    if size_bytes > FRAME_BYTES_MAX:
        raise Unencodable(f"a frame of {size_bytes} bytes is too large")
    assert parts[0] is out, "the header comes before any records"
    _SIZE.pack_into(out, 0, size_bytes)
    return parts


def decode_response(cls: type[M], version: int, buffer: Buffer) -> tuple[int, M]:
    """The correlation id and the message of a frame (without its size)."""
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    try:
        (correlation_id,) = _SIZE.unpack_from(view)
        position = _SIZE.size
        if cls.flexible_since <= version and cls.api_key is not ApiKey.API_VERSIONS:
            position = skip_tags(view, position)
    except (struct.error, IndexError) as error:
        raise Malformed(f"a response header cannot be read: {error}") from error
    message, _ = decode_from(cls, version, view, position)
    return correlation_id, message
