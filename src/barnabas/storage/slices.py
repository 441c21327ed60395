"""The bytes of a slice of a log as one piece, read off the loop where the page cache does not have them."""

from __future__ import annotations

from barnabas.wire.batch import HEADER_BYTES, read_header
from barnabas.world.disk import CHUNK_BYTES_MAX, FileSlice


async def load(piece: FileSlice) -> bytes:
    """The bytes of a slice and, if its first batch reaches beyond it, the rest of that batch."""
    data = bytearray()
    await _read_into(data, piece, piece.size_bytes)
    if len(data) >= HEADER_BYTES:
        await _read_into(data, piece, read_header(data).size_bytes)
    return bytes(data)


async def _read_into(data: bytearray, piece: FileSlice, size_bytes: int) -> None:
    while len(data) < size_bytes:
        position, left = piece.position + len(data), min(size_bytes - len(data), CHUNK_BYTES_MAX)
        view = piece.file.view(position, left)
        if view is None:
            view = await piece.file.load(position, left)
        if not view:
            return
        data += view
        piece.file.release(view)
