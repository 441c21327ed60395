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
VARINT_MAX: Final = 2**32 - 1
TAGGED_FIELDS_MAX: Final = 1024  # of one struct; Kafka itself has never used more than a handful
INLINE_RECORDS_BYTES_MAX: Final = 4096  # larger records travel as a part of their own, uncopied
CACHED_COUNT_MAX: Final = 127  # layouts of longer strings and arrays are built anew whenever they are needed
CACHED_LAYOUTS_MAX: Final = 1024  # of one place in one codec
BUFFERS: Final = frozenset({bytes, bytearray, memoryview})


class Unencodable(BarnabasError, ValueError):
    """A value that the format of this version cannot carry: the caller is wrong, not a peer."""


class SizedPart(Protocol):
    """Record bytes that are not in memory, such as a slice of a file; only their size matters here."""

    @property
    def size_bytes(self) -> int: ...


Records: TypeAlias = Buffer | SizedPart


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes and the position after it."""
    value = view[position]
    if value < 0x80:
        return value, position + 1
    byte = view[position + 1]
    if byte < 0x80:
        return value & 0x7F | byte << 7, position + 2
    value = value & 0x7F | (byte & 0x7F) << 7
    for shift in (14, 21, 28):
        byte = view[position + shift // 7]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > VARINT_MAX:
                raise Malformed("a varint is wider than 32 bits")
            return value, position + shift // 7 + 1
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


def append_records(records: Any, out: bytearray, parts: list[Any] | None) -> bytearray:
    """Put records behind what was written so far and hand out the buffer in which to go on.

    Small records are copied; others become a part of their own, which costs no copy, and a new buffer begins.
    """
    in_memory = type(records) in BUFFERS
    if in_memory and (parts is None or len(records) <= INLINE_RECORDS_BYTES_MAX):
        out += records
        return out
    if parts is None:
        raise Unencodable("records outside of memory can only be encoded in parts")
    if out:
        parts.append(out)
    parts.append(records)
    return bytearray()


def part_size(part: Any) -> int:
    return len(part) if type(part) in BUFFERS else int(part.size_bytes)


class Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """Length -> the function that reads that many bytes or elements, and the fixed fields behind them.

    The length is the one on the wire: in compact form it is one more than the count. A null is refused here, because
    it is never in the dictionary.
    """

    def __init__(self, name: str, code: str, suffix: str, *, compact: bool) -> None:
        super().__init__()
        self._name = name
        self._code = code
        self._suffix = suffix
        self._compact = compact

    def __missing__(self, length: int) -> Callable[..., tuple[Any, ...]]:
        count = length - self._compact
        if count < 0:
            raise Malformed(f"{self._name} must not be null")
        unpack = Struct(f">{count}{self._code}{self._suffix}").unpack_from
        if count <= CACHED_COUNT_MAX:
            self[length] = unpack
        return unpack


class Packers(dict[Any, Callable[..., bytes]]):
    """Lengths of integer arrays -> the function that writes them with the fixed fields around them.

    The pieces are the codes before, between and behind the arrays, which are given by their element's code.
    """

    def __init__(self, pieces: list[str], codes: list[str], *, compact: bool) -> None:
        super().__init__()
        self._pieces = pieces
        self._codes = codes
        self._compact = compact

    def __missing__(self, key: Any) -> Callable[..., bytes]:
        counts = [max(length - self._compact, 0) for length in (key if isinstance(key, tuple) else (key,))]
        arrays = [f"{count}{code}" for count, code in zip(counts, self._codes, strict=True)]
        layout = ">" + "".join(piece + array for piece, array in zip(self._pieces, [*arrays, ""], strict=True))
        pack = Struct(layout).pack
        if len(self) < CACHED_LAYOUTS_MAX and max(counts) <= CACHED_COUNT_MAX:
            self[key] = pack
        return pack
