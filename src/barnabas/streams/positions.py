"""Positions: offsets of source topics up to which an application has read, and Kafka's format for them.

A position has the offset of the *next* record for each partition, as committed offsets have. Kafka's format, which is
in a header of changelog records, has the offset of the last record that was read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from barnabas.streams.errors import StateCorrupt

__all__ = ["HEADERS_VERSION", "POSITION_HEADER", "Position", "decode_position", "encode_position", "merge_into"]

Position: TypeAlias = Mapping[str, Mapping[int, int]]  # topic -> partition -> offset of the next record

POSITION_HEADER: Final = "c"  # Kafka's name for it: consistency
HEADERS_VERSION: Final = b"\x00"  # value of the header "v" beside it
VERSION: Final = 0
_COUNT: Final = struct.Struct(">i")
_PAIR: Final = struct.Struct(">iq")


def merge_into(target: dict[str, dict[int, int]], position: Position) -> None:
    """Move a position forward to another one, where that is ahead."""
    for topic, offsets in position.items():
        known = target.setdefault(topic, {})
        for partition, offset in offsets.items():
            known[partition] = max(offset, known.get(partition, 0))


def encode_position(position: Position) -> bytes:
    """Encode a position as Kafka's PositionSerde does."""
    parts = [bytes((VERSION,)), _COUNT.pack(len(position))]
    for topic in sorted(position):
        name, offsets = topic.encode(), position[topic]
        parts += [_COUNT.pack(len(name)), name, _COUNT.pack(len(offsets))]
        parts += [_PAIR.pack(partition, offsets[partition] - 1) for partition in sorted(offsets)]
    return b"".join(parts)


def decode_position(data: bytes) -> dict[str, dict[int, int]]:
    """Decode a position. Raises StateCorrupt if the bytes are no position."""
    if not data or data[0] != VERSION:
        raise StateCorrupt(f"a position has format {data[0] if data else 'none'}; this release reads {VERSION}")
    place = 1
    found: dict[str, dict[int, int]] = {}

    def count() -> int:
        nonlocal place
        (value,) = _COUNT.unpack_from(data, place)
        place += _COUNT.size
        return int(value)

    try:
        for _ in range(count()):
            size = count()
            topic = data[place : place + size].decode()
            place += size
            offsets = found.setdefault(topic, {})
            for _ in range(count()):
                partition, offset = _PAIR.unpack_from(data, place)
                place += _PAIR.size
                offsets[partition] = offset + 1
    except (struct.error, UnicodeDecodeError) as error:
        raise StateCorrupt(f"a position of {len(data)} bytes is damaged: {error}") from error
    return found


def as_text(position: Position) -> str:
    """A position for people: ``lines-0: 12, lines-1: 7``."""
    return ", ".join(_places(position)) or "nothing read yet"


def _places(position: Position) -> Iterable[str]:
    for topic in sorted(position):
        for partition, offset in sorted(position[topic].items()):
            yield f"{topic}-{partition}: {offset}"
