"""The format of state blobs: a version byte, then MessagePack. No pickle, so a blob never runs code when it is read.

A blob holds ``[cells, [[store, [key, value, key, value, ...]], ...]]``. ``cells`` are the numbers that nodes keep
beside their stores, by name. Keys and values are packed by the store; a value of nil deletes the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from barnabas.streams.errors import StateCorrupt

__all__ = ["CHUNK_BYTES_MAX", "Cells", "decode_chunk", "encode_chunks"]

VERSION: Final = 1
CHUNK_BYTES_MAX: Final = 1 << 20

Cells: TypeAlias = dict[str, list[int]]
Entry: TypeAlias = tuple[str, bytes, bytes | None]  # store, packed key, packed value

_Decoded: TypeAlias = tuple[dict[str, list[int]], list[tuple[str, list[bytes | None]]]]
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Decoded).decode


def encode_chunks(cells: Cells, entries: Iterable[Entry], limit: int = CHUNK_BYTES_MAX) -> Iterator[bytes]:
    """Encode entries as blobs of about ``limit`` bytes; an entry that is larger has a blob of its own.

    The cells are in the first blob. There is always at least one blob.
    """
    head = cells
    stores: dict[str, list[bytes | None]] = {}
    size = 0
    for store, key, value in entries:
        grown = len(key) + (len(value) if value is not None else 0) + 12
        if size and size + grown > limit:
            yield _blob(head, stores)
            head, stores, size = {}, {}, 0
        stores.setdefault(store, []).extend((key, value))
        size += grown
    if size or head is cells:
        yield _blob(head, stores)


def _blob(cells: Cells, stores: dict[str, list[bytes | None]]) -> bytes:
    return bytes((VERSION,)) + _encode((cells, list(stores.items())))


def decode_chunk(blob: bytes) -> tuple[Cells, Iterator[Entry]]:
    """Decode a blob. Raises :class:`StateCorrupt` if it is damaged or of another version."""
    if not blob or blob[0] != VERSION:
        found = blob[0] if blob else "none"
        raise StateCorrupt(f"the state has format version {found}; this release reads version {VERSION}")
    try:
        cells, stores = _decode(memoryview(blob)[1:])
    except msgspec.MsgspecError as error:
        raise StateCorrupt(f"a state blob of {len(blob)} bytes is damaged: {error}") from error
    return cells, _entries(stores)


def _entries(stores: list[tuple[str, list[bytes | None]]]) -> Iterator[Entry]:
    for store, flat in stores:
        for position in range(0, len(flat), 2):
            key = flat[position]
            assert key is not None
            yield store, key, flat[position + 1]
