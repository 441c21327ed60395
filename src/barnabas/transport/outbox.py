"""What leaves a connection: buffers and slices of files, in order, under the transport's back-pressure.

A slice is read from its file only when the transport has room, in chunks, so a reader that stalls holds one chunk of
memory and not its whole answer. Large slices that are cached go from the file to the socket past the transport, which
has sent all that came before; once the socket is full, a chunk in the transport's hands waits for room again. A reader
that keeps up would take megabytes at once: after some of them the other connections get their turn. The connection
fills this outbox and forwards ``pause`` and ``resume`` to it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.world.disk import CHUNK_BYTES_MAX, Buffer, DiskFailure, FileClosed, FileSlice
from barnabas.world.tasks import Tasks

Part = Buffer | FileSlice

# Beyond this many unsent bytes the transport pauses us; at zero it lets us go on, and every chunk is free again.
UNSENT_BYTES_MAX: Final = 64 * 1024
GATHERED_BYTES_MAX: Final = UNSENT_BYTES_MAX  # a small answer is one write, for which its slices are copied
DIRECT_BYTES_MIN: Final = 2 * UNSENT_BYTES_MAX  # less of a file is copied sooner than it is sent past the transport
TURN_BYTES_MAX: Final = 2 * CHUNK_BYTES_MAX  # of files; a produce that waits behind more of it is a slow one
NO_SOCKET: Final = -1


class LastAnswer(list[Part]):
    """An answer after which the connection is closed: whoever got it is to look elsewhere."""


class Outbox:
    def __init__(self, transport: asyncio.Transport, on_drained: Callable[[], None]) -> None:
        self._transport = transport
        self._on_drained = on_drained
        self._parts: deque[Part] = deque()
        self.put: Callable[[Iterable[Part]], None] = self._parts.extend  # called for every answer
        self._lent: list[tuple[FileSlice, memoryview]] = []
        self._tasks = Tasks(on_failure=lambda error: transport.abort())
        self._loading: asyncio.Task[None] | None = None
        self._next_turn: asyncio.Handle | None = None
        self._turn_bytes = 0
        self._is_paused = False
        self._socket = _socket_of(transport)
        transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX, low=0)

    @property
    def is_idle(self) -> bool:
        """Nothing waits here and the transport takes more."""
        return not self._parts and not self._is_paused

    def flush(self) -> bool:
        """Hand over what the transport takes now; the rest follows when it has room. Whether there is none."""
        parts = self._parts
        while parts and not self._is_paused and self._loading is None and self._next_turn is None:
            if not isinstance(parts[0], FileSlice) and len(parts) == 1:
                self._transport.write(parts.popleft())  # type: ignore[arg-type]
            elif self._turn_bytes >= TURN_BYTES_MAX:
                self._next_turn = asyncio.get_running_loop().call_soon(self._begin_turn)
            elif not self._send_gathered():
                self._send_slice(parts[0])  # type: ignore[arg-type]
        return not parts and not self._is_paused

    def _begin_turn(self) -> None:
        self._next_turn = None
        self._turn_bytes = 0
        self._go_on()

    def _go_on(self) -> None:
        if self.flush():
            self._on_drained()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._take_back()
        self._turn_bytes = 0
        self._go_on()

    def close(self) -> None:
        self._parts.clear()
        if self._loading is not None:
            self._loading.cancel()
        if self._next_turn is not None:
            self._next_turn.cancel()
        self._lent.clear()  # the transport may still refer to them: dropped, never reused

    def _send_gathered(self) -> bool:
        """Send buffers and small slices that are cached in one write; false if none comes first."""
        parts = self._parts
        buffers: list[Buffer] = []
        views: list[tuple[FileSlice, memoryview]] = []
        size_bytes = 0
        while parts:
            part = parts[0]
            if isinstance(part, FileSlice):
                size_bytes += part.size_bytes
                if size_bytes > GATHERED_BYTES_MAX:
                    break
                view = self._view_whole(part)
                if view is None:
                    break
                buffers.append(view)
                views.append((part, view))
            else:
                size_bytes += len(part)
                buffers.append(part)
            parts.popleft()
        if not buffers:
            return False
        if len(buffers) == 1:
            self._transport.write(buffers[0])
            self._lent += views
        else:
            self._transport.write(b"".join(buffers))
            for piece, view in views:
                piece.file.release(view)
        return True

    def _view_whole(self, piece: FileSlice) -> memoryview | None:
        """None if something is wrong with it or not cached: whoever sends it alone finds out."""
        try:
            view = piece.file.view(piece.position, piece.size_bytes)
        except (DiskFailure, FileClosed):
            return None
        if view is not None and len(view) < piece.size_bytes:
            piece.file.release(view)
            return None
        return view

    def _send_slice(self, piece: FileSlice) -> None:
        left_bytes = self._send_direct(piece)
        if left_bytes:
            self._view_slice(piece, left_bytes)

    def _send_direct(self, piece: FileSlice) -> int:
        """Send some of it past the transport; if that cannot be done, how much of it goes through the transport."""
        size_bytes = min(piece.size_bytes, CHUNK_BYTES_MAX)
        if not self._is_direct(size_bytes):
            return size_bytes
        sent = piece.file.send(self._socket, piece.position, size_bytes)
        if sent:
            self._advance(piece, sent)
            return 0
        return size_bytes if sent is None else DIRECT_BYTES_MIN  # the socket is full

    def _is_direct(self, size_bytes: int) -> bool:
        """The socket is the system's, all that came before is in it, and its number is not somebody else's by now."""
        if size_bytes < DIRECT_BYTES_MIN or self._socket == NO_SOCKET:
            return False
        return not self._transport.get_write_buffer_size() and not self._transport.is_closing()

    def _view_slice(self, piece: FileSlice, size_bytes: int) -> None:
        try:
            view = piece.file.view(piece.position, size_bytes)
        except (DiskFailure, FileClosed) as error:
            self._give_up(piece, error)
            return
        if view is None:
            self._loading = self._tasks.start(self._load(piece), "outbox")
        else:
            self._send_chunk(piece, view)

    async def _load(self, piece: FileSlice) -> None:
        """The pages are not cached: the device is waited for off the loop, other connections go on."""
        left_bytes = min(piece.size_bytes, CHUNK_BYTES_MAX)
        view: memoryview | None = None
        try:
            if self._is_direct(left_bytes):
                await piece.file.cache(piece.position, piece.size_bytes)
                self._turn_bytes = 0
                left_bytes = self._send_direct(piece)
            if left_bytes:  # forgotten already, or never to be sent past the transport
                view = await piece.file.load(piece.position, left_bytes)
                self._turn_bytes = 0
        except (DiskFailure, FileClosed) as error:
            self._loading = None
            self._give_up(piece, error)
            return
        self._loading = None
        if view is not None:
            self._send_chunk(piece, view)
        self._go_on()

    def _send_chunk(self, piece: FileSlice, view: memoryview) -> None:
        if not view:  # the file is shorter than it was when the answer was promised
            self._give_up(piece)
            return
        self._advance(piece, len(view))
        self._lent.append((piece, view))
        self._transport.write(view)
        if self._transport.get_write_buffer_size() == 0:
            self._take_back()

    def _advance(self, piece: FileSlice, sent: int) -> None:
        self._turn_bytes += sent
        if sent == piece.size_bytes:
            self._parts.popleft()
        else:
            self._parts[0] = piece._replace(position=piece.position + sent, size_bytes=piece.size_bytes - sent)

    def _give_up(self, piece: FileSlice, error: DiskFailure | FileClosed | None = None) -> None:
        """Half of an answer is out and the rest cannot be had: there is no honest way to end it but this."""
        self._parts.clear()
        self._transport.abort()
        if isinstance(error, DiskFailure) and piece.on_failure is not None:
            piece.on_failure(error)

    def _take_back(self) -> None:
        for piece, view in self._lent:
            piece.file.release(view)
        self._lent.clear()


def _socket_of(transport: asyncio.Transport) -> int:
    """The number of the operating system's socket if what is written there goes out as it is."""
    if transport.get_extra_info("sslcontext") is not None:
        return NO_SOCKET
    socket = transport.get_extra_info("socket")
    return NO_SOCKET if socket is None else socket.fileno()
