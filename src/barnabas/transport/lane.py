"""One connection to one node that is opened on demand: the client and the links between nodes share this class.

A lane opens its connection for the first request, once for all callers that wait for it. It agrees on API versions and
authenticates before any caller may use the connection, and authenticates again where sessions expire. After a failed
attempt it pauses, longer each time. It closes the connection when a request times out, and also when a caller stops
waiting and no response arrives before that request's own timeout: the next request opens another connection. Callers
decide which node to ask and whether to retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.model.errors import BarnabasError, Malformed
from barnabas.transport.backoff import Backoff
from barnabas.transport.channel import FRAME_BYTES_MAX, IN_FLIGHT_MAX, Channel, PeerGone, Unreachable
from barnabas.transport.versions import NO_LIMIT, ApiRanges, Shaped, agree
from barnabas.wire.message import Message
from barnabas.world.tasks import Tasks

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.transport.session import Prove

SYSTEM_DEFAULT: Final = -1  # size of a socket buffer that the operating system chooses
NEVER: Final = -1  # idle time after which a connection is not closed
IDLE_CHECK_SECONDS_MIN: Final = 0.01  # between two checks of a connection that is in use


def no_tls() -> SSLContext | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOptions:
    client_id: str | None
    setup_timeout_ms: int  # for the TCP and TLS handshakes; it doubles with every failed attempt
    setup_timeout_max_ms: int
    handshake_timeout_ms: int  # for the agreement on versions and the authentication
    backoff_ms: int  # pause after a failed attempt; it doubles with every failed attempt
    backoff_max_ms: int
    idle_max_ms: int = NEVER
    frame_bytes_max: int = FRAME_BYTES_MAX
    in_flight_max: int = IN_FLIGHT_MAX
    send_buffer_bytes: int = SYSTEM_DEFAULT
    receive_buffer_bytes: int = SYSTEM_DEFAULT
    tls: Callable[[], SSLContext | None] = no_tls  # called for every new connection
    prove: Prove | None = None  # returns the credentials for SASL, if the listener requires it


class Lane:
    def __init__(self, host: str, port: int, options: LaneOptions, chance: Callable[[int], int]) -> None:
        """``chance`` returns a number below its argument: clients must not reconnect at the same moment."""
        self.host = host
        self.port = port
        self.ranges = ApiRanges({})  # of the newest connection
        self.quiet_until = 0.0  # before this time on the loop's clock no request is sent
        self._options = options
        self._chance = chance
        self._backoff = Backoff(options.backoff_ms, options.backoff_max_ms, chance)
        self._setup_timeout = Backoff(options.setup_timeout_ms, options.setup_timeout_max_ms, chance)
        self._channel: Channel | None = None  # the newest one; it may be closed
        self._tasks = Tasks()
        self._opening: asyncio.Task[Channel] | None = None
        self._open_not_before = 0.0  # on the loop's clock, as the times below
        self._calls = 0  # number of requests that wait, for the connection or for their responses
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.is_open

    @property
    def in_flight(self) -> int:
        return self._channel.in_flight if self._channel is not None else 0

    # --- requests -------------------------------------------------------------------------------------------------

    async def send(self, message: Message | Shaped, *, timeout_ms: int, version_max: int = NO_LIMIT) -> Message:
        """Return the response, in the newest version that both sides know.

        Raises TimeoutError, PeerGone, Malformed, Unencodable, or ApiError if the node does not know the API.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        self._calls += 1
        try:
            async with asyncio.timeout_at(deadline):
                channel = self._channel
                if channel is None or not channel.is_open:
                    channel = await self.open()
                if isinstance(message, Shaped):
                    version = self.ranges.highest_common(message.request, version_max=version_max)
                    message = message.build(version)
                else:
                    version = self.ranges.highest_common(type(message), version_max=version_max)
                if self.quiet_until:
                    await self._wait_out_quiet()
                return await channel.send(message, version)
        except (TimeoutError, Malformed):
            # Later responses would wait behind the missing one, or cannot be told from the bytes that are wrong.
            self.abort()
            raise
        except asyncio.CancelledError:
            # The caller's own timeout often expires first, and the connection may be dead all the same.
            self._abort_if_silent(deadline)
            raise
        finally:
            self._calls -= 1
            if self._idle_timer is not None:
                self._idle_since = loop.time()

    async def send_silent(self, message: Message, *, version_max: int = NO_LIMIT) -> None:
        """Send a request that has no response (Produce with acks=0)."""
        channel = await self.open()
        version = self.ranges.highest_common(type(message), version_max=version_max)
        self._idle_since = asyncio.get_running_loop().time()
        await channel.send_silent(message, version)

    async def _wait_out_quiet(self) -> None:
        pause = self.quiet_until - asyncio.get_running_loop().time()
        if pause > 0:
            await asyncio.sleep(pause)
        else:
            self.quiet_until = 0.0

    # --- the connection -------------------------------------------------------------------------------------------

    async def open(self) -> Channel:
        """Return the open channel. All callers that wait for a new one share one attempt."""
        while True:
            if self._is_stopped:
                raise self._stopped()
            if self._channel is not None and self._channel.is_open:
                return self._channel
            if self._opening is None or self._opening.done():
                name = f"dial:{self.host}:{self.port}"
                self._opening = self._tasks.call(self._open(), name)
                self._opening.add_done_callback(retrieved)
            opening = self._opening
            try:
                channel = await asyncio.shield(opening)
            except asyncio.CancelledError:
                if not opening.cancelled():
                    raise
                raise self._stopped() from None
            if channel.is_open:
                return channel

    async def _open(self) -> Channel:
        loop = asyncio.get_running_loop()
        pause = self._open_not_before - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        try:
            channel, self.ranges = await self.connect()
        except BarnabasError:
            self._open_not_before = loop.time() + self._backoff.next_ms() / 1000
            raise
        self._channel = channel
        self._backoff.reset()
        self._setup_timeout.reset()
        self._watch_idleness()
        return channel

    async def connect(self) -> tuple[Channel, ApiRanges]:
        """Open a connection that the lane does not keep: connect, agree on versions and authenticate."""
        options = self._options
        try:
            async with asyncio.timeout(self._setup_timeout.next_ms() / 1000):
                channel = await Channel.connect(
                    self.host,
                    self.port,
                    client_id=options.client_id,
                    frame_bytes_max=options.frame_bytes_max,
                    in_flight_max=options.in_flight_max,
                    ssl=options.tls(),
                )
            try:
                async with asyncio.timeout(options.handshake_timeout_ms / 1000):
                    return channel, await self._shake_hands(channel)
            except BaseException:
                channel.abort()
                raise
        except TimeoutError:
            raise Unreachable(self.host, self.port, "no answer; is a Kafka broker listening there?") from None
        except Malformed as error:
            raise Malformed(f"{error}; is it a Kafka broker?") from error

    async def _shake_hands(self, channel: Channel) -> ApiRanges:
        options = self._options
        _size_buffers(channel, options)
        ranges = await agree(channel)
        if options.prove is not None:
            # Most listeners of a development machine need no authentication, and so none of its modules.
            from barnabas.transport.session import Session

            session = Session(channel, options.prove, self._chance, timeout_ms=options.handshake_timeout_ms)
            await session.begin()
        return ranges

    def _abort_if_silent(self, deadline: float) -> None:
        """Close the connection at ``deadline`` if by then the oldest request of now has had no response."""
        channel = self._channel
        oldest = None if channel is None else channel.oldest
        if channel is None or oldest is None:
            return

        def check() -> None:
            if channel.is_open and channel.oldest == oldest:
                channel.abort()

        asyncio.get_running_loop().call_at(deadline, check)

    def _watch_idleness(self) -> None:
        """Close the connection once no request has used it for the longest idle time."""
        limit = self._options.idle_max_ms / 1000
        if limit < 0:
            return
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = loop.call_later(limit, self._check_idleness, limit)

    def _check_idleness(self, limit: float) -> None:
        self._idle_timer = None
        if not self.is_open:
            return
        loop = asyncio.get_running_loop()
        is_busy = bool(self._calls or self.in_flight)
        left = max(limit, IDLE_CHECK_SECONDS_MIN) if is_busy else self._idle_since + limit - loop.time()
        if left > 0:
            self._idle_timer = loop.call_later(left, self._check_idleness, limit)
        else:
            self.close()

    # --- its end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection after everything written has left; the next request opens another one."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._channel is not None:
            self._channel.close()

    def abort(self) -> None:
        """Close the connection at once; the next request opens another one."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._channel is not None:
            self._channel.abort()

    def stop(self, *, has_time: bool = False) -> None:
        """Close the connection for good. With ``has_time`` what was written may still leave."""
        self._is_stopped = True
        if self._opening is not None:
            self._opening.cancel()
        if has_time:
            self.close()
        else:
            self.abort()

    async def wait_stopped(self, *, seconds_max: float | None = None) -> None:
        """Wait until the connection is gone; after ``seconds_max`` what has not left is given up."""
        if self._opening is not None and not self._opening.done():
            await asyncio.wait([self._opening])
        if self._channel is not None:
            await asyncio.wait([self._channel.closed], timeout=seconds_max)
            self._channel.abort()

    def _stopped(self) -> PeerGone:
        return PeerGone(f"{self.host}:{self.port}: the connection was closed on this side")


def _size_buffers(channel: Channel, options: LaneOptions) -> None:
    sizes = options.send_buffer_bytes, options.receive_buffer_bytes
    if max(sizes) >= 0 and channel.socket is not None:  # a simulated connection has none
        from barnabas.world.real import size_buffers

        size_buffers(channel.socket, *sizes)


def retrieved(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that several callers await: all of them may have stopped waiting."""
    if not task.cancelled():
        task.exception()
