"""The slow paths that compiled codecs call: long varints, tagged fields nobody knows, packers of integer arrays.

Nothing here knows a message. The single-byte and fixed-width paths are written into the generated source by
``barnabas.wire.decoder`` and ``barnabas.wire.encoder``; these functions take over where a value is long or odd.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Protocol, TypeAlias

from barnabas.model.errors import BarnabasError, Malformed

Buffer: TypeAlias = bytes | bytearray | memoryview

STRING_BYTES_MAX: Final = 2**15 - 1
BYTES_MAX: Final = 2**31 - 1
VARINT_BYTES_MAX: Final = 5
TAGGED_FIELDS_MAX: Final = 1024  # of one struct; Kafka itself has never used more than a handful
INLINE_RECORDS_BYTES_MAX: Final = 4096  # larger records travel as a part of their own, uncopied
_CACHED_ELEMENTS_MAX: Final = 64  # packers of longer arrays are built when they are needed


class Unencodable(BarnabasError, ValueError):
    """A value that the format of this version cannot carry: the caller is wrong, not a peer."""


class SizedPart(Protocol):
    """Record bytes that are not in memory, such as a slice of a file; only their size matters here."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = Buffer | SizedPart


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes and the position after it."""
    value = shift = 0
    for byte in view[position : position + VARINT_BYTES_MAX]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                raise Malformed("a varint is wider than 32 bits")
            return value, position
        shift += 7
    raise Malformed("a varint does not end")


def read_string_length(view: memoryview, position: int) -> tuple[int, int]:
    """The length plus one of a compact string, known to be longer than a byte can say."""
    value, position = read_varint(view, position)
    if value - 1 > STRING_BYTES_MAX:
        raise Malformed(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    return value, position


def write_varint(out: bytearray, value: int) -> None:
    if value > BYTES_MAX:
        raise Unencodable(f"a length of {value} is more than the protocol can say")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_string_length(out: bytearray, value: int) -> None:
    if value - 1 > STRING_BYTES_MAX:
        raise Unencodable(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    write_varint(out, value)


def read_tag_count(view: memoryview, position: int) -> tuple[int, int]:
    count, position = read_varint(view, position)
    if count > TAGGED_FIELDS_MAX:
        raise Malformed(f"{count} tagged fields are more than {TAGGED_FIELDS_MAX}")
    return count, position


def read_tag(view: memoryview, position: int) -> tuple[int, int, int]:
    """The tag, where its value begins and where it ends; the end lies within the view."""
    tag, position = read_varint(view, position)
    size_bytes, position = read_varint(view, position)
    end = position + size_bytes
    if end > len(view):
        raise Malformed(f"tagged field {tag} of {size_bytes} bytes reaches beyond the message")
    return tag, position, end


def skip_tags(view: memoryview, position: int) -> int:
    """Pass over the tagged fields whose count begins at the position: they come from a newer peer."""
    count, position = read_tag_count(view, position)
    for _ in range(count):
        _, _, position = read_tag(view, position)
    return position


def append_records(records: Any, out: bytearray, parts: list[Any] | None) -> None:
    """Small records are copied behind what was written so far; others become a part, which costs no copy."""
    in_memory = isinstance(records, bytes | bytearray | memoryview)
    if in_memory and (parts is None or len(records) <= INLINE_RECORDS_BYTES_MAX):
        out += records
        return
    if parts is None:
        raise Unencodable("records outside of memory can only be encoded in parts")
    if out:
        parts.append(out[:])
        out.clear()
    parts.append(records)


def records_size(records: Any) -> int:
    if isinstance(records, bytes | bytearray | memoryview):
        return len(records)
    return int(records.size_bytes)


class Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """For a fixed-width element: count -> the function that reads that many of them."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[..., tuple[Any, ...]]:
        unpack = Struct(f">{count}{self._code}").unpack_from
        if count <= _CACHED_ELEMENTS_MAX:
            self[count] = unpack
        return unpack


class Packers(dict[int, Callable[..., bytes]]):
    """For fixed fields that end in an array of fixed-width elements: count -> the function that writes them all."""

    def __init__(self, prefix: str, code: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        pack = Struct(f">{self._prefix}{count}{self._code}").pack
        if count <= _CACHED_ELEMENTS_MAX:
            self[count] = pack
        return pack
