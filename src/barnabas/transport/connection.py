"""The server's end of one connection: frames in, answers out, in the order of the requests.

A request is answered at once (a list of parts), later without holding up those behind it (a future), or by a
coroutine, during which the connection handles no further request. What a frame means is not known here: ``serve``
decides, see ``barnabas.broker.requests.dispatch``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from struct import Struct
from typing import Any, Final, Protocol, TypeAlias, cast

from barnabas.model.errors import Malformed
from barnabas.observe.log import logger
from barnabas.transport.buffers import SCRATCH_BYTES, FramePool
from barnabas.transport.outbox import LastAnswer, Outbox, Part
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

Parts: TypeAlias = list[Part]
Later: TypeAlias = "asyncio.Future[Parts | None]"
Answer: TypeAlias = "Parts | Later | Coroutine[Any, Any, Parts | Later | None] | None"
Serve: TypeAlias = "Callable[[Connection, memoryview], Answer]"

log = logger("connection")

SIZE_BYTES: Final = 4
_unpack_size: Final = Struct(">i").unpack_from
FRAMES_PER_TURN_MAX: Final = 128  # then other connections get their turn
TURN_NS_MAX: Final = 2_000_000  # time for the frames of one connection, likewise
LONG_FRAME_BYTES_MIN: Final = 512 * 1024
LONG_FRAMES_PER_TURN_MAX: Final = 4  # one at a time would cost a third of the throughput
STASH_BYTES_MAX: Final = SCRATCH_BYTES  # unread input kept while a request is being worked on
ANSWERS_WAITING_MAX: Final = 1000  # requests accepted but not yet answered


class Owner(Protocol):
    """The listener, which counts its connections."""

    def admit(self, connection: Connection) -> bool: ...
    def forget(self, connection: Connection) -> None: ...


class Timing(Protocol):
    """The measurement of one request: called when its response is the next to leave, and when it has left."""

    def leaving(self) -> None: ...
    def left(self) -> bool: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        owner: Owner,
        serve: Serve,
        pool: FramePool,
        *,
        listener_name: str,
        frame_bytes_max: int,
        now_ns: Callable[[], int] = lambda: 0,
    ):
        self._owner, self._serve, self._pool = owner, serve, pool
        self.listener_name = listener_name
        self.frame_bytes_max = frame_bytes_max  # the stage of the connection decides: less before sign-in
        self.requests = 0
        self.active_ms = 0  # kept by the listener, for idle connections
        self.is_open = False
        self.peer = self.local = ("", 0)
        self.state: Any = None  # whatever the one who serves remembers of this peer
        self.when_lost: list[Callable[[], None]] = []  # called once, when the connection has ended
        self.is_last_answer = False  # hang up when all that is under way has been answered
        self._stash = bytearray()
        self._frame: bytearray | None = None  # a frame larger than the scratch area, as it arrives
        self._frame_goal = 0  # its size as the peer states it
        self._frame_size = 0  # how much of it there is memory for
        self._frame_filled = 0
        self._long_frames = 0  # how many there were
        self._answers: deque[Later | Parts] = deque()
        self._tasks = Tasks()
        self._task: asyncio.Task[None] | None = None
        self._is_muted = self._is_resuming = False
        self._is_reading = True
        self._now_ns = now_ns
        self.arrived_ns = 0  # when the bytes that are being handled came
        self.timing: Timing | None = None  # of the one request that is being measured
        self._held: Timer | None = None  # a client that asks too much is not heard for a while

    @property
    def is_busy(self) -> bool:
        """A request is being worked on or waits for its answer."""
        return self._task is not None or bool(self._answers) or not self._outbox.is_idle

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        """What the peer has shown and TLS has verified, as the standard library reads it; None if nothing."""
        return self._transport.get_extra_info("peercert") or None

    # --- asyncio's side -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio's shape but not its class.
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = Outbox(self._transport, self._drained)
        self.peer = (transport.get_extra_info("peername") or ("", 0))[:2]
        self.local = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.is_open = True
        if not self._owner.admit(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._frame_filled : self._frame_size]
        return self._pool.scratch_view

    def buffer_updated(self, nbytes: int) -> None:
        self.arrived_ns = self._now_ns()
        try:
            if self._frame is None and not self._is_muted and not self._stash:
                self._process(self._pool.scratch_view[:nbytes])
            else:
                self._received(nbytes)
            if nbytes == SCRATCH_BYTES and self._frame is None and not self._is_muted:
                self._leave_the_rest()
        except Malformed as error:
            self._hang_up(error)

    def _received(self, nbytes: int) -> None:
        if self._frame is not None:
            self._frame_filled += nbytes
            self._continue_frame()
        elif self._is_muted:
            self._stash += self._pool.scratch_view[:nbytes]
            if len(self._stash) > STASH_BYTES_MAX:
                self._pause_reading()
        else:
            self._stash += self._pool.scratch_view[:nbytes]
            self._process_stash()

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self._outbox.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._outbox.close()
        self.timing = None
        if self._held is not None:
            self._held.cancel()
        for answer in self._answers:
            if isinstance(answer, asyncio.Future):
                answer.cancel()
        self._answers.clear()
        self._stash = bytearray()
        if self._frame is not None and self._task is None:
            self._frame = None
        self._owner.forget(self)
        while self.when_lost:
            self.when_lost.pop()()

    # --- requests -------------------------------------------------------------------------------------------------

    def _process(self, data: memoryview) -> None:
        """Handle every complete frame; keep the rest for later."""
        position, end, frames = 0, len(data), 0
        while end - position >= SIZE_BYTES:
            (size,) = _unpack_size(data, position)
            if size <= 0 or size > self.frame_bytes_max:
                raise Malformed(f"a frame of {size} bytes")
            start = position + SIZE_BYTES
            if start + size > end:
                break
            position = start + size
            answer = self._serve(self, data[start:position])
            if type(answer) is list and not self._answers:
                self._outbox.put(answer)
            else:
                self._take(answer)
            frames += 1
            if self._is_muted or not self.is_open:
                break
            if frames >= FRAMES_PER_TURN_MAX or (position < end and self._now_ns() - self.arrived_ns > TURN_NS_MAX):
                self._yield_turn()
                break
        self.requests += frames
        if position < end:
            self._keep(data[position:])
        if not (self._outbox.flush() if self.timing is None else self._flush()):
            self._mute()  # a peer that does not read its answers is not asked for more requests

    def _keep(self, rest: memoryview) -> None:
        if self.is_open and not self._is_muted and len(rest) >= SIZE_BYTES:
            (size,) = _unpack_size(rest, 0)  # a frame that is not whole; its size was found to be right
            if size + SIZE_BYTES > SCRATCH_BYTES:
                self._begin_frame(size, rest[SIZE_BYTES:])
                return
        self._stash += rest

    def _process_stash(self) -> None:
        stash, self._stash = self._stash, bytearray()
        self._process(memoryview(stash))

    def _begin_frame(self, size: int, first: memoryview) -> None:
        self._frame = self._pool.take(size)
        self._frame_size = min(size, len(self._frame))
        self._frame_goal = size
        self._frame_filled = len(first)
        self._frame[: len(first)] = first

    def _continue_frame(self) -> None:
        assert self._frame is not None
        if self._frame_filled < self._frame_size:
            return
        if self._frame_size < self._frame_goal:
            self._frame = self._pool.grown(self._frame, size_bytes=self._frame_goal)
            self._frame_size = len(self._frame)
            return
        self.requests += 1
        self._take(self._serve(self, memoryview(self._frame)[: self._frame_goal]))
        if self._task is None:
            self._end_frame()
            if self._frame_goal >= LONG_FRAME_BYTES_MIN:
                self._long_frames += 1
                if self._long_frames % LONG_FRAMES_PER_TURN_MAX == 0:
                    self._leave_the_rest()
        else:
            self._pause_reading()  # the coroutine may still look at the frame
        if not self._flush():
            self._mute()

    def _end_frame(self) -> None:
        if self._frame is not None:
            self._pool.give(self._frame)
            self._frame = None

    def _take(self, answer: Answer) -> None:
        if answer is None or isinstance(answer, list | asyncio.Future):
            self._answer(answer)
        else:
            self._mute()
            self._task = self._tasks.start(self._await(answer), "request")

    async def _await(self, answer: Coroutine[Any, Any, Parts | Later | None]) -> None:
        try:
            outcome = await answer
        except Malformed as error:
            self._hang_up(error)
            return
        except BaseException:
            self.abort()  # otherwise the client would wait for ever
            raise
        finally:
            self._task = None
            self._end_frame()
        if self.is_open:
            self._answer(outcome)
            self._flush()
            if self.is_last_answer:
                self.close()
            self._unmute()

    def _answer(self, answer: Parts | Later | None) -> None:
        """Into the outbox, or behind the answers that must leave before it."""
        if isinstance(answer, asyncio.Future):
            self._answers.append(answer)
            answer.add_done_callback(self._answered)
            if len(self._answers) >= ANSWERS_WAITING_MAX:
                self._mute()
        elif answer is not None:
            if self._answers:
                self._answers.append(answer)
            else:
                self._outbox.put(answer)

    # --- answers --------------------------------------------------------------------------------------------------

    def _answered(self, _: Later) -> None:
        """Send every answer at the front of the queue that is ready."""
        if not self.is_open:
            return
        while self._answers:
            answer = self._answers[0]
            if isinstance(answer, asyncio.Future):
                if not answer.done():
                    break
                if answer.cancelled() or answer.exception() is not None:
                    self.close()
                    return
                parts = answer.result()
            else:
                parts = answer
            self._answers.popleft()
            if parts:
                self._outbox.put(parts)
            is_over = self.is_last_answer and not self._answers and self._task is None
            if is_over or isinstance(parts, LastAnswer):
                self.close()
                return
        self._flush()
        self._unmute()

    def _flush(self) -> bool:
        """Send what is ready; whether the transport has taken all of it."""
        timing = self.timing
        if timing is not None:
            timing.leaving()
        is_out = self._outbox.flush()
        if is_out and timing is not None and timing.left():
            self.timing = None
        return is_out

    def _drained(self) -> None:
        """The transport has taken everything that waited for it."""
        if self.timing is not None and self.timing.left():
            self.timing = None
        self._unmute()

    def close(self) -> None:
        """Hang up; answers that are ready still leave, as far as the transport takes them now."""
        if self.is_open:
            self._outbox.flush()
        self.is_open = False
        self._transport.close()

    def _hang_up(self, reason: Malformed) -> None:
        log.info("connection is closed", peer=self.peer[0], listener=self.listener_name, reason=reason)
        self.close()

    def abort(self) -> None:
        self.is_open = False
        self._transport.abort()

    async def cut_off(self) -> None:
        """End the connection and what is being worked on for it: the broker stops."""
        self.abort()
        await self._tasks.stop()

    # --- turns ----------------------------------------------------------------------------------------------------

    def hold(self, timers: Timers, duration_ms: int) -> None:
        """Hear no further request for a while; the answer under way leaves at once."""
        self._mute()
        if self._held is not None:
            self._held.cancel()
        self._held = timers.after(duration_ms, self._release)

    def _release(self) -> None:
        self._held = None
        if self.is_open:
            self._unmute()

    def _mute(self) -> None:
        self._is_muted = True

    def _yield_turn(self) -> None:
        self._mute()
        if not self._is_resuming:
            self._is_resuming = True
            asyncio.get_running_loop().call_soon(self._resume_turn)

    def _leave_the_rest(self) -> None:
        """For the next turn, with what has come already: uvloop would go on reading, up to 32 times."""
        self._yield_turn()
        self._pause_reading()

    def _resume_turn(self) -> None:
        self._is_resuming = False
        self._unmute()

    def _unmute(self) -> None:
        """Go on with the requests that arrived meanwhile, if nothing else holds the connection."""
        if not self._is_muted or not self.is_open or self._task is not None or self._is_resuming:
            return
        if self._held is not None or not self._outbox.is_idle or len(self._answers) >= ANSWERS_WAITING_MAX:
            return
        self._is_muted = False
        try:
            if self._stash:
                self.arrived_ns = self._now_ns()  # it waited behind its own connection, as if in the socket
                self._process_stash()
        except Malformed as error:
            self._hang_up(error)
            return
        if not self._is_muted:
            self._resume_reading()

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._is_reading and self.is_open:
            self._is_reading = True
            self._transport.resume_reading()
