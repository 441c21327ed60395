"""The client's end of one connection: send a request, await its answer.

Requests may be pipelined; a Kafka broker answers in the order of the requests, and the correlation ids prove it. While
it is held, or has no room, requests wait and keep their order. No time-out, no retry and no version is chosen here:
``barnabas.client.cluster.connections`` and replication's fetchers do that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from barnabas.model import errors
from barnabas.model.errors import BarnabasError, Malformed
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_response, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages import response_of
from barnabas.wire.record_builder import unfilled

if TYPE_CHECKING:
    from asyncio.trsock import TransportSocket
    from ssl import SSLContext

    from barnabas.world.disk import Buffer

SIZE_BYTES: Final = 4
SCRATCH_BYTES: Final = 32 * 1024
FRAME_BYTES_MAX: Final = 128 * 1024 * 1024
FIRST_FRAME_BYTES: Final = 256 * 1024  # what a large frame gets before its bytes prove that it is larger
IN_FLIGHT_MAX: Final = 256
CORRELATION_ID_MAX: Final = 2**31 - 1

_unpack_size: Final = Struct(">i").unpack_from
_unpack_correlation_and_error: Final = Struct(">ih").unpack_from


class PeerGone(BarnabasError):
    """The connection ended, so nobody knows whether the requests without an answer were carried out."""

    retriable = True


class Unreachable(PeerGone):
    """No connection could be made at all; nothing was sent."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


class Refused(Unreachable):
    """Nothing listens there: the process that did, if there was one, is gone."""


class _Pending(NamedTuple):
    correlation_id: int
    response: type[Message]
    version: int
    answer: asyncio.Future[Message]


class Channel(asyncio.BufferedProtocol):
    """Made by :meth:`connect`. ``closed`` is done once the connection is gone, however it went."""

    def __init__(self, host: str, port: int, *, client_id: str | None, frame_bytes_max: int, in_flight_max: int):
        self.host = host
        self.port = port
        self.client_id = client_id
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._frame_bytes_max = frame_bytes_max
        self._in_flight_max = in_flight_max
        self._transport: asyncio.Transport | None = None
        self._error: BarnabasError | None = None  # why we are closing, for those who wait
        self._next_correlation_id = 0
        self._pending: deque[_Pending] = deque()
        self._queue: deque[asyncio.Event] = deque()  # senders that wait for room
        self._is_paused = False
        self._held_from: float | None = None  # on the loop's clock
        self._silence = asyncio.Event()  # set when the last answer came to one who waits for that
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._frame: bytearray | None = None  # a frame larger than the scratch area, as it arrives
        self._frame_goal = 0
        self._frame_bytes_proven = 0  # the largest frame that came whole: another one like it is believed at once
        self._filled = 0  # bytes received into the frame, or else into the scratch area

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        in_flight_max: int = IN_FLIGHT_MAX,
        ssl: SSLContext | None = None,
    ) -> Channel:
        loop = asyncio.get_running_loop()
        try:
            _, channel = await loop.create_connection(
                lambda: cls(
                    host, port, client_id=client_id, frame_bytes_max=frame_bytes_max, in_flight_max=in_flight_max
                ),
                host,
                port,
                ssl=ssl,
            )
        except ConnectionRefusedError:
            raise Refused(host, port, "nothing is listening there") from None
        except OSError as error:
            raise Unreachable(host, port, error.strerror or str(error)) from error
        except (ValueError, OverflowError) as error:
            # Addresses come from peers too, who may say any text and number.
            raise Unreachable(host, port, f"that is no address: {error}") from error
        return channel

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<Channel {self.host}:{self.port} {state} in_flight={self.in_flight}>"

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._error is None

    @property
    def socket(self) -> TransportSocket | None:
        """None where there is no system under the connection."""
        return None if self._transport is None else self._transport.get_extra_info("socket")

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    @property
    def oldest(self) -> int | None:
        """The number of the request that has waited longest for its answer."""
        return self._pending[0].correlation_id if self._pending else None

    @property
    def has_room(self) -> bool:
        return not self._is_paused and len(self._pending) < self._in_flight_max and not self._is_held

    @property
    def _is_held(self) -> bool:
        return self._held_from is not None and asyncio.get_running_loop().time() >= self._held_from

    # --- requests -------------------------------------------------------------------------------------------------

    async def send(self, message: Message, version: int) -> Message:
        """Wait for room, send, wait for the answer. A caller who gives up leaves the answer to be thrown away."""
        await self.wait_for_room()
        return await self.post(message, version)

    def post(self, message: Message, version: int) -> asyncio.Future[Message]:
        """Send at once and answer later; whoever calls this bounds by himself what is in flight."""
        correlation_id = self._write(message, version)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        assert message.api_key is not None
        response = response_of(message.api_key)
        self._pending.append(_Pending(correlation_id, response, version, answer))
        return answer

    async def send_silent(self, message: Message, version: int) -> None:
        """Send a request that has no answer (Produce with acks=0)."""
        await self.wait_for_room()
        self._write(message, version)

    async def wait_for_room(self) -> None:
        """Who waits longest goes first, also before those who come just when there is room again."""
        if self.has_room and not self._queue:
            return
        turn = asyncio.Event()
        self._queue.append(turn)
        try:
            while self.is_open and not (self.has_room and self._queue[0] is turn):
                turn.clear()
                await turn.wait()
        finally:
            if turn in self._queue:
                self._queue.remove(turn)
            self._admit()  # the next one looks after we have written

    def hold(self) -> None:
        """From now on requests wait; what is posted still leaves."""
        self._held_from = float("-inf")

    def release(self, *, until: float | None = None) -> None:
        """Requests may leave again, until a time on the loop's clock if one is given."""
        self._held_from = until
        self._admit()

    async def wait_for_silence(self) -> None:
        """Until nothing is in flight, or the connection is gone."""
        while self._pending and self.is_open:
            self._silence.clear()
            await self._silence.wait()

    def _write(self, message: Message, version: int) -> int:
        if self._transport is None or self._error is not None:
            if self._error is not None and not isinstance(self._error, PeerGone | Malformed):
                raise self._error
            raise PeerGone(f"{self.host}:{self.port}: the connection is closed") from self._error
        correlation_id = self._next_correlation_id
        self._next_correlation_id = 0 if correlation_id == CORRELATION_ID_MAX else correlation_id + 1
        parts = encode_request(message, version, correlation_id=correlation_id, client_id=self.client_id)
        self._transport.writelines(cast("list[Buffer]", parts))  # a client's requests hold no slices of files
        return correlation_id

    def close(self) -> None:
        """Close once everything written is out; everyone who waits for an answer is told that the peer is gone."""
        if self._transport is not None:
            self._transport.close()
        self._fail(PeerGone("the connection was closed on this side"))

    def abort(self, error: BarnabasError | None = None) -> None:
        """Close at once; what was written but has not left is lost. Who waits to send is told the error, if any."""
        self._fail(error or PeerGone("the connection was aborted on this side"))
        if self._transport is not None:
            self._transport.abort()

    def _admit(self) -> None:
        """Wake the sender whose turn it is, if there is room; it wakes the next one."""
        if self._queue and self.has_room:
            self._queue[0].set()

    # --- answers --------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._scratch[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        if self._error is not None:
            return
        self._filled += nbytes
        try:
            if self._frame is None:
                self._scan_scratch()
            else:
                self._scan_frame(self._frame)
        except Malformed as error:
            self._fail(error)

    def _scan_scratch(self) -> None:
        """Every frame here is copied out once, because its message may keep views of it for as long as it likes."""
        scratch, position, end = self._scratch, 0, self._filled
        while end - position >= SIZE_BYTES:
            (size,) = _unpack_size(scratch, position)
            if size <= 0 or size > self._frame_bytes_max:
                raise Malformed(f"{self.host}:{self.port} announced a frame of {size} bytes")
            if size > end - position - SIZE_BYTES:
                break
            position += SIZE_BYTES
            self._answer(memoryview(bytes(scratch[position : position + size])))
            position += size
        rest = bytes(scratch[position:end])
        if len(rest) >= SIZE_BYTES:
            (size,) = _unpack_size(rest)
            if size + SIZE_BYTES > SCRATCH_BYTES:
                self._frame_goal = size
                self._frame = unfilled(min(size, max(FIRST_FRAME_BYTES, self._frame_bytes_proven)))
                self._filled = len(rest) - SIZE_BYTES
                self._frame[: self._filled] = rest[SIZE_BYTES:]
                return
        self._filled = len(rest)
        scratch[: self._filled] = rest

    def _scan_frame(self, frame: bytearray) -> None:
        if self._filled < len(frame):
            return
        if self._filled < self._frame_goal:
            # Memory grows with the bytes that came, not with the length that was announced. The event loop still
            # holds a view of the old memory, so it is replaced and not resized.
            larger = unfilled(min(self._frame_goal, 2 * len(frame)))
            larger[: len(frame)] = frame
            self._frame = larger
            return
        self._frame = None
        self._filled = 0
        self._frame_bytes_proven = max(self._frame_bytes_proven, len(frame))
        self._answer(memoryview(frame))

    def _answer(self, frame: memoryview) -> None:
        if not self._pending:
            raise Malformed(f"{self.host}:{self.port} sent an answer that nobody asked for")
        pending = self._pending[0]
        version = pending.version
        if pending.response.api_key == ApiKey.API_VERSIONS and len(frame) >= 6:
            # A broker that does not know our version of ApiVersions says so in the layout of version 0 (KIP-511).
            _, code = _unpack_correlation_and_error(frame)
            if code == errors.UNSUPPORTED_VERSION.code:
                version = 0
        correlation_id, message = decode_response(pending.response, version, frame)
        if correlation_id != pending.correlation_id:
            raise Malformed(
                f"{self.host}:{self.port} answered request {correlation_id} when {pending.correlation_id} was next"
            )
        self._pending.popleft()
        if not pending.answer.done():
            pending.answer.set_result(message)
        if not self._pending:
            self._silence.set()
        self._admit()

    # --- the connection -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's have the shape but not the class

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._admit()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(PeerGone(f"the connection was lost: {exc}" if exc else "the peer closed the connection"))
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)

    def _fail(self, error: BarnabasError) -> None:
        """Tell the one who was next what is wrong, and all behind it that the peer is gone."""
        if self._error is not None:
            return
        self._error = error
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()
        pending, self._pending = self._pending, deque()
        queue, self._queue = self._queue, deque()
        blamed = error if isinstance(error, Malformed) else None
        for entry in pending:
            if not entry.answer.done():
                entry.answer.set_exception(blamed or PeerGone(f"{self.host}:{self.port}: {error}"))
                blamed = None
        for turn in queue:
            turn.set()
        self._silence.set()
