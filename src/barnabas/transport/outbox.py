"""What leaves a connection: buffers and slices of files, in order, under the transport's back-pressure.

A slice is read from its file only when the transport has room, in chunks, so a reader that stalls holds one chunk of
memory and not its whole answer. The connection fills this outbox and forwards ``pause`` and ``resume`` to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.world.disk import CHUNK_BYTES_MAX, Buffer, DiskFailure, FileClosed, FileSlice

Part = Buffer | FileSlice

# Beyond this many unsent bytes the transport pauses us; at zero it lets us go on, and every chunk is free again.
UNSENT_BYTES_MAX: Final = 64 * 1024


class Outbox:
    def __init__(self, transport: asyncio.Transport, on_drained: Callable[[], None]) -> None:
        self._transport = transport
        self._on_drained = on_drained
        self._parts: deque[Part] = deque()
        self.put: Callable[[Iterable[Part]], None] = self._parts.extend  # called for every answer
        self._lent: list[tuple[FileSlice, memoryview]] = []
        self._loading: asyncio.Task[None] | None = None
        self._is_paused = False
        transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX, low=0)

    @property
    def is_idle(self) -> bool:
        """Nothing waits here and the transport takes more."""
        return not self._parts and not self._is_paused

    def flush(self) -> bool:
        """Hand over what the transport takes now; the rest follows when it has room. Whether there is none."""
        parts = self._parts
        while parts and not self._is_paused and self._loading is None:
            if isinstance(parts[0], FileSlice):
                self._send_slice(parts[0])
            elif len(parts) == 1:
                self._transport.write(parts.popleft())  # type: ignore[arg-type]
            else:
                self._send_buffers()
        return not parts and not self._is_paused

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._take_back()
        if self.flush():
            self._on_drained()

    def close(self) -> None:
        self._parts.clear()
        if self._loading is not None:
            self._loading.cancel()
        self._lent.clear()  # the transport may still refer to them: dropped, never reused

    def _send_buffers(self) -> None:
        buffers: list[Buffer] = []
        parts = self._parts
        while parts and not isinstance(parts[0], FileSlice):
            buffers.append(parts.popleft())  # type: ignore[arg-type]
        self._transport.write(buffers[0] if len(buffers) == 1 else b"".join(buffers))

    def _send_slice(self, piece: FileSlice) -> None:
        try:
            view = piece.file.view(piece.position, min(piece.size_bytes, CHUNK_BYTES_MAX))
        except (DiskFailure, FileClosed):
            self._give_up()
            return
        if view is None:
            self._loading = asyncio.get_running_loop().create_task(self._load(piece), name="outbox:load")
        else:
            self._send_chunk(piece, view)

    async def _load(self, piece: FileSlice) -> None:
        """The pages are not cached: the device is waited for off the loop, other connections go on."""
        try:
            view = await piece.file.load(piece.position, min(piece.size_bytes, CHUNK_BYTES_MAX))
        except (DiskFailure, FileClosed):
            self._loading = None
            self._give_up()
            return
        self._loading = None
        self._send_chunk(piece, view)
        if self.flush():
            self._on_drained()

    def _send_chunk(self, piece: FileSlice, view: memoryview) -> None:
        sent = len(view)
        if sent == 0:  # the file is shorter than it was when the answer was promised
            self._give_up()
            return
        if sent == piece.size_bytes:
            self._parts.popleft()
        else:
            self._parts[0] = FileSlice(piece.file, piece.position + sent, piece.size_bytes - sent)
        self._lent.append((piece, view))
        self._transport.write(view)
        if self._transport.get_write_buffer_size() == 0:
            self._take_back()

    def _give_up(self) -> None:
        """Half of an answer is out and the rest cannot be had: there is no honest way to end it but this."""
        self._parts.clear()
        self._transport.abort()

    def _take_back(self) -> None:
        for piece, view in self._lent:
            piece.file.release(view)
        self._lent.clear()
