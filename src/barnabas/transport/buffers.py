"""Memory for what arrives: one scratch area shared by every connection of a loop, and a pool of larger frames.

A connection at rest owns no receive buffer at all, so ten thousand idle ones cost nothing; a frame larger than the
scratch area gets memory that grows only as its bytes arrive, so a peer that lies about a length pays for it itself.
"""

from __future__ import annotations

from typing import Final

SCRATCH_BYTES: Final = 64 * 1024
FIRST_FRAME_BYTES: Final = 1024 * 1024  # what a large frame gets of what is free, before its bytes prove anything
FRESH_FRAME_BYTES: Final = 2 * SCRATCH_BYTES  # what it gets if nothing is: thousands of strangers may claim large ones
POOLED_FRAMES_MAX: Final = 16
POOLED_FRAME_BYTES_MAX: Final = 2 * 1024 * 1024  # larger buffers are rare; they are given back to the system


class FramePool:
    """Buffers for frames above the scratch size, reused: fresh pages cost more than copying into warm ones."""

    def __init__(self) -> None:
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self._free: list[bytearray] = []

    def take(self, size_bytes: int) -> bytearray:
        """A buffer to begin with, not always as large as the frame: see ``grown``."""
        wanted = min(size_bytes, FIRST_FRAME_BYTES)
        for index, buffer in enumerate(self._free):
            if len(buffer) >= wanted:
                return self._free.pop(index)
        return bytearray(FRESH_FRAME_BYTES)

    def grown(self, buffer: bytearray, *, size_bytes: int) -> bytearray:
        """A larger buffer that starts with the bytes of this one: doubled, but never beyond the frame's size."""
        larger = bytearray(min(size_bytes, 2 * len(buffer)))
        larger[: len(buffer)] = buffer
        if len(buffer) >= FIRST_FRAME_BYTES:
            self.give(buffer)
        return larger

    def give(self, buffer: bytearray) -> None:
        """Back from a frame that has come whole."""
        if len(buffer) <= POOLED_FRAME_BYTES_MAX and len(self._free) < POOLED_FRAMES_MAX:
            # The next one shall find one that is large enough, though this frame began with little.
            self._free.append(buffer if len(buffer) >= FIRST_FRAME_BYTES else bytearray(FIRST_FRAME_BYTES))
