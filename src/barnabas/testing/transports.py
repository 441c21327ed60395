"""One end of a simulated connection: asyncio's Transport over bytes that travel in virtual time.

Bytes written leave at once, in pieces, while the receiver's window has room; what has to wait is kept by reference, as
production loops keep it. Pieces arrive in order. The network makes transports in pairs and decides latencies.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.world.disk import Buffer

if TYPE_CHECKING:
    from barnabas.testing.loop import SimulatedLoop
    from barnabas.testing.network import Network

WINDOW_BYTES: Final = 64 * 1024  # what may be under way or wait unread at the other end
HIGH_WATER_BYTES: Final = 64 * 1024
SIZE_HINT_BYTES: Final = 64 * 1024
EOF: Final = b""  # no piece of data is empty


class SimulatedTransport(asyncio.Transport):
    peer: SimulatedTransport

    def __init__(
        self,
        loop: SimulatedLoop,
        network: Network,
        number: int,
        context: contextvars.Context,
        addresses: tuple[tuple[str, int], tuple[str, int]],
    ) -> None:
        super().__init__()
        self.host_name = addresses[0][0]
        self.has_begun = False
        self._loop = loop
        self._network = network
        self._number = number
        self._context = context
        self._addresses = addresses
        self._protocol: asyncio.BaseProtocol | None = None
        # Sending: what was written and has not left; what the other end has not taken yet.
        self._outbox: deque[Buffer] = deque()
        self._outbox_bytes = 0
        self._is_pump_due = False
        self._ends_after_outbox = False
        self._has_sent_eof = False
        self._unread_bytes = 0
        self._stalled: deque[bytes] = deque()  # left while the link was cut
        self._last_arrival_ns = 0
        self._is_writing_paused = False
        self._high_bytes, self._low_bytes = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        # Receiving.
        self._inbox: deque[bytes] = deque()
        self._is_reading_paused = False
        self._is_closing = False
        self._is_lost = False

    def begin(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        protocol = factory()
        self._protocol = protocol
        try:
            protocol.connection_made(self)
            self.has_begun = True
        finally:
            if not self.has_begun:
                self.abort()
        self._loop.call_soon(self._take_inbox, context=self._context)

    # asyncio's face.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": self._addresses[0], "peername": self._addresses[1]}.get(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_reading_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        if self._is_reading_paused and not self._is_closing:
            self._is_reading_paused = False
            self._loop.call_soon(self._take_inbox, context=self._context)

    def get_write_buffer_size(self) -> int:
        return self._outbox_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_bytes, self._high_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high {high} must be at least low {low}, and that at least 0")
        self._high_bytes, self._low_bytes = high, low
        self._apply_limits()

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: Buffer) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"bytes are written, not {type(data).__name__}")
        if self._ends_after_outbox and not self._is_closing:
            raise RuntimeError("nothing is written after the end of the stream")
        if self._is_closing or len(data) == 0:
            return
        self._outbox.append(data)
        self._outbox_bytes += len(data)
        self._pump()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)

    def write_eof(self) -> None:
        if not self._is_closing:
            self._ends_after_outbox = True
            self._pump_soon()

    def close(self) -> None:
        """What was written still leaves, if the other end takes it."""
        if not self._is_closing:
            self._is_closing = True
            self._ends_after_outbox = True
            self._pump_soon()

    def abort(self) -> None:
        if not self._is_lost:
            self._stalled.clear()
            self._reset_peer()
            self.lose(None)

    # Sending.

    def _pump_soon(self) -> None:
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_soon(self._pump, context=self._context)

    def _pump(self) -> None:
        """Let as much leave as the window allows; then the end of the stream, if it is due."""
        self._is_pump_due = False
        if self._is_lost:
            return
        while self._outbox and self._unread_bytes < WINDOW_BYTES:
            self._send(self._next_piece())
        if not self._outbox and self._ends_after_outbox and not self._has_sent_eof:
            self._has_sent_eof = True
            self._send(EOF)
        if self._is_closing and not self._outbox:
            if any(self._inbox):  # closing a socket that holds unread data breaks the connection
                self._reset_peer()
            self.lose(None)
        else:
            self._apply_limits()

    def _next_piece(self) -> bytes:
        left = self._network.piece_bytes(min(self._outbox_bytes, WINDOW_BYTES - self._unread_bytes))
        self._outbox_bytes -= left
        parts: list[Buffer] = []
        while left:
            data = self._outbox.popleft()
            if len(data) > left:
                view = memoryview(data)
                self._outbox.appendleft(view[left:])
                data = view[:left]
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def _send(self, piece: bytes) -> None:
        self._unread_bytes += len(piece)
        if self._network.is_cut(self.host_name, self.peer.host_name):
            self._stalled.append(piece)
        else:
            self._dispatch(self.peer._arrive, piece)

    def retry(self) -> None:
        """The link was healed, perhaps: what had stalled goes on its way."""
        while self._stalled and not self._network.is_cut(self.host_name, self.peer.host_name):
            self._dispatch(self.peer._arrive, self._stalled.popleft())

    def _dispatch(self, arrive: Callable[..., None], *arguments: object) -> None:
        """Have the other end called after the latency, never before what left earlier."""
        latency_ns = self._network.latency_ns(self.host_name, self.peer.host_name)
        self._last_arrival_ns = max(self._last_arrival_ns, self._loop.now_ns + latency_ns)
        self._loop.call_at_ns(self._last_arrival_ns, arrive, *arguments, context=self.peer._context)

    def _reset_peer(self) -> None:
        if not self._network.is_cut(self.host_name, self.peer.host_name):
            self._dispatch(self.peer.lose, ConnectionResetError(104, "the other end broke the connection"))

    def _apply_limits(self) -> None:
        if self._is_lost or self._protocol is None:
            return
        if self._outbox_bytes > self._high_bytes and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()
        elif self._outbox_bytes <= self._low_bytes and self._is_writing_paused:
            self._is_writing_paused = False
            self._protocol.resume_writing()

    # Receiving.

    def _arrive(self, piece: bytes) -> None:
        self._loop.trace("arrive", self._number, piece)
        if not self._is_lost:
            self._inbox.append(piece)
            self._take_inbox()
        elif piece:  # data for an end that is closed is answered with a reset
            self._reset_peer()

    def _take_inbox(self) -> None:
        while self._inbox and self.has_begun and self.is_reading():
            piece = self._inbox.popleft()
            is_done = False
            try:
                self._take(piece)
                is_done = True
            finally:
                # A protocol that fails loses its connection; the loop reports why.
                if not is_done:
                    self.abort()

    def _take(self, piece: bytes) -> None:
        protocol = self._protocol
        if piece is EOF or not piece:
            assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)
            if not protocol.eof_received():
                self.close()
            return
        taken = len(piece)
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(SIZE_HINT_BYTES))
            if not len(buffer):
                raise RuntimeError("get_buffer() gave an empty buffer")
            taken = min(taken, len(buffer))
            buffer[:taken] = piece[:taken]
            if taken < len(piece):
                self._inbox.appendleft(piece[taken:])
            protocol.buffer_updated(taken)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(piece)
        self.peer._has_been_read(taken)

    def _has_been_read(self, size_bytes: int) -> None:
        self._unread_bytes -= size_bytes
        if not self._is_lost and (self._outbox or self._ends_after_outbox):
            self._pump_soon()

    # The end.

    def lose(self, error: Exception | None) -> None:
        """This end is over, now; its protocol hears of it in the next turn."""
        if self._is_lost:
            return
        self._loop.trace("lose", self._number)
        if error is not None:
            self._stalled.clear()
        self._end()
        self._loop.call_soon(self._call_connection_lost, error, context=self._context)

    def vanish(self) -> None:
        """This end's machine is gone: nobody is left here to be told."""
        if not self._is_lost:
            self._reset_peer()
            self._stalled.clear()
            self._end()

    def _end(self) -> None:
        self._is_lost = self._is_closing = True
        self._outbox.clear()
        self._inbox.clear()
        self._outbox_bytes = 0
        if self.peer._is_lost:
            self._network.ended(self._number)

    def _call_connection_lost(self, error: Exception | None) -> None:
        if self._protocol is not None:
            self._protocol.connection_lost(error)
