"""Memory that file views are read into, used again and again.

Only whole chunks are kept; small reads get memory of their own size, so that a stalled reader of a small answer holds
little. A chunk that anybody still looks at never comes back into use, however early it was released. Called by the
real disk, on the loop's thread alone.
"""

from __future__ import annotations

from array import array
from typing import Final

from barnabas.world.disk import CHUNK_BYTES_MAX

POOLED_CHUNKS_MAX: Final = 64
SMALL_READ_BYTES_MAX: Final = 16 * 1024
# Common processors copy five times more slowly to an address that is a few bytes above the source's, modulo this. A
# large allocation begins 16 bytes into a page, and the cached pages of a file at none: reading from its start was slow.
PAGE_BYTES: Final = 4096


class _Chunk(array):  # type: ignore[type-arg]
    """A type of its own, so that memory which is not ours is never taken into the pool."""


class ChunkPool:
    def __init__(self, *, chunks_max: int = POOLED_CHUNKS_MAX) -> None:
        self._free: list[_Chunk] = []
        self._chunks_max = chunks_max

    @property
    def free_count(self) -> int:
        return len(self._free)

    def take(self, size_bytes: int, *, position: int = 0) -> memoryview:
        """Memory for what lies at a position of a file; at the same place within a page as there."""
        assert 0 < size_bytes <= CHUNK_BYTES_MAX
        if size_bytes <= SMALL_READ_BYTES_MAX:
            return memoryview(bytearray(size_bytes))
        chunk = self._free.pop() if self._free else _Chunk("B", bytes(CHUNK_BYTES_MAX + PAGE_BYTES))
        start = (position - chunk.buffer_info()[0]) % PAGE_BYTES
        return memoryview(chunk)[start : start + size_bytes]

    def give(self, view: memoryview) -> None:
        """Take the memory of a view back. Giving twice, or giving what was never taken, changes nothing."""
        try:
            chunk = view.obj
            view.release()
        except (ValueError, BufferError):
            # Released before, or a consumer still holds the buffer: the collector frees it when all are done.
            return
        if type(chunk) is not _Chunk or len(self._free) >= self._chunks_max:
            return
        try:
            # An array refuses to change its size while any view of it lives: the cheapest way to ask.
            chunk.append(chunk.pop())
        except BufferError:
            return
        self._free.append(chunk)
