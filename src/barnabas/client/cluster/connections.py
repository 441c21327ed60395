"""One lane to one broker: dialled when needed, dialled again after a pause, versions agreed on first.

A request that blocks its connection (a long poll) takes another lane than those that must not wait behind it. Which
broker to ask and whether to ask again is decided in ``cluster.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.client.errors import Garbled, TimedOut
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, Malformed
from barnabas.transport.backoff import Backoff
from barnabas.transport.channel import Channel, PeerGone, Unreachable
from barnabas.transport.versions import NO_LIMIT, ApiRanges, Shaped, agree
from barnabas.wire.message import Message, Unencodable

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.client.cluster.tokens import Tokens

R = TypeVar("R", bound=Message)

CLOSE_SECONDS_MAX: Final = 1.0
IDLE_LOOK_SECONDS_MIN: Final = 0.01  # between two looks whether a busy connection still is


class Connection:
    def __init__(
        self, host: str, port: int, *, settings: Settings, chance: Callable[[int], int], tokens: Tokens | None = None
    ) -> None:
        self.host = host
        self.port = port
        self.ranges = ApiRanges({})
        self._settings = settings
        self._chance = chance
        self._tokens = tokens
        self._calls = 0  # that are under way
        self._idle_since = 0.0  # on the loop's clock, as the times below
        self._idle_timer: asyncio.TimerHandle | None = None
        self._backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, chance)
        self._patience = Backoff(
            settings.socket_connection_setup_timeout_ms, settings.socket_connection_setup_timeout_max_ms, chance
        )
        self._channel: Channel | None = None
        self._opening: asyncio.Task[Channel] | None = None
        self._dial_not_before = 0.0
        self._quiet_until = 0.0  # the broker asked us to keep quiet (KIP-219)
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.is_open

    @property
    def in_flight(self) -> int:
        return self._channel.in_flight if self._channel is not None else 0

    async def open(self) -> Channel:
        """The open channel, dialled if need be; all who wait share one attempt."""
        while True:
            if self._is_closed:
                raise PeerGone(f"{self.host}:{self.port}: the client was closed")
            if self._channel is not None and self._channel.is_open:
                return self._channel
            if self._opening is None or self._opening.done():
                name = f"dial:{self.host}:{self.port}"
                self._opening = asyncio.get_running_loop().create_task(self._dial(), name=name)
                self._opening.add_done_callback(retrieved)
            opening = self._opening
            try:
                channel = await asyncio.shield(opening)
            except asyncio.CancelledError:
                if not opening.cancelled():
                    raise
                raise PeerGone(f"{self.host}:{self.port}: the client was closed") from None
            if channel.is_open:
                return channel

    async def call(
        self,
        message: Message | Shaped,
        response: type[R],
        *,
        timeout_ms: int | None = None,
        version_max: int = NO_LIMIT,
    ) -> R:
        """One attempt: the answer in the highest common version, or why there is none."""
        loop = asyncio.get_running_loop()
        timeout_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        self._calls += 1
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                channel = await self.open()
                kind = message.request if isinstance(message, Shaped) else type(message)
                version = self.ranges.highest_common(kind, version_max=version_max)
                await self.wait_out_throttle()
                shaped = message.build(version) if isinstance(message, Shaped) else message
                answer = await channel.send(shaped, version)
        except Malformed as error:
            self.drop()
            raise Garbled(f"{self.host}:{self.port}: {error}") from error
        except Unencodable as error:
            # What was asked for has no words in the version that the broker speaks.
            raise ApiError(
                errors.UNSUPPORTED_VERSION, f"{_name(message)} to {self.host}:{self.port}: {error}"
            ) from error
        except TimeoutError:
            self.drop()
            name = _name(message)
            raise TimedOut(f"{self.host}:{self.port} did not answer {name} within {timeout_ms} ms") from None
        finally:
            self._calls -= 1
            self._idle_since = loop.time()
        assert isinstance(answer, response)
        self.heed_throttle(getattr(answer, "throttle_time_ms", 0), now=loop.time())
        return answer

    async def cast(self, message: Message, *, version_max: int = NO_LIMIT) -> None:
        """Send a request that has no answer."""
        channel = await self.open()
        version = self.ranges.highest_common(type(message), version_max=version_max)
        self._idle_since = asyncio.get_running_loop().time()
        await channel.send_silent(message, version)

    def heed_throttle(self, throttle_time_ms: int, *, now: float) -> None:
        if throttle_time_ms > 0:
            self._quiet_until = max(self._quiet_until, now + throttle_time_ms / 1000)

    async def wait_out_throttle(self) -> None:
        pause = self._quiet_until - asyncio.get_running_loop().time()
        if pause > 0:
            await asyncio.sleep(pause)

    def drop(self) -> None:
        """Give the channel up; the next call dials again."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._channel is not None:
            self._channel.close()

    def _watch_idleness(self) -> None:
        """Close the channel once nobody has used it for connections.max.idle.ms; the next call dials again."""
        limit = self._settings.connections_max_idle_ms / 1000
        if limit < 0:
            return
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = loop.call_later(limit, self._look_at_idleness, limit)

    def _look_at_idleness(self, limit: float) -> None:
        self._idle_timer = None
        if not self.is_open:
            return
        loop = asyncio.get_running_loop()
        is_busy = bool(self._calls or self.in_flight)
        left = max(limit, IDLE_LOOK_SECONDS_MIN) if is_busy else self._idle_since + limit - loop.time()
        if left > 0:
            self._idle_timer = loop.call_later(left, self._look_at_idleness, limit)
        else:
            self.drop()

    async def close(self) -> None:
        self._is_closed = True
        self.drop()
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._channel is not None:
            self._channel.close()
            # What was written still leaves, unless the peer has stopped reading.
            await asyncio.wait([self._channel.closed], timeout=CLOSE_SECONDS_MAX)
            self._channel.abort()

    async def _dial(self) -> Channel:
        loop = asyncio.get_running_loop()
        pause = self._dial_not_before - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        settings = self._settings
        channel: Channel | None = None
        try:
            async with asyncio.timeout(self._patience.next_ms() / 1000):
                channel = await Channel.connect(
                    self.host,
                    self.port,
                    client_id=settings.client_id,
                    frame_bytes_max=settings.receive_frame_max_bytes,
                    ssl=_tls(settings) if settings.has_tls else None,
                )
            _size_buffers(channel, settings)
            async with asyncio.timeout(settings.request_timeout_ms / 1000):
                self.ranges = await agree(channel)
                if settings.has_sasl:
                    await _sign_in(channel, settings, self._chance, self._tokens)
        except TimeoutError:
            self._dial_not_before = loop.time() + self._backoff.next_ms() / 1000
            raise Unreachable(self.host, self.port, "no answer; is a Kafka broker listening there?") from None
        except BarnabasError as error:
            self._dial_not_before = loop.time() + self._backoff.next_ms() / 1000
            if isinstance(error, Malformed):
                raise Garbled(f"{self.host}:{self.port}: {error}; is it a Kafka broker?") from error
            raise
        else:
            # Only now may others use it: before the versions are agreed on nobody knows what to say.
            self._channel = channel
            self._backoff.reset()
            self._patience.reset()
            self._watch_idleness()
            return channel
        finally:
            if channel is not None and channel is not self._channel:
                channel.close()


def _size_buffers(channel: Channel, settings: Settings) -> None:
    sizes = settings.send_buffer_bytes, settings.receive_buffer_bytes
    if max(sizes) >= 0 and channel.socket is not None:  # a simulated connection has none
        from barnabas.world.real import size_buffers

        size_buffers(channel.socket, *sizes)


def _name(message: Message | Shaped) -> str:
    return (message.request if isinstance(message, Shaped) else type(message)).__name__


# Most commands talk to a broker on the same machine: what signing in needs is imported by those who do.


def _tls(settings: Settings) -> SSLContext | None:
    from barnabas.client.cluster.authentication import tls_of

    return tls_of(settings)


async def _sign_in(channel: Channel, settings: Settings, chance: Callable[[int], int], tokens: Tokens | None) -> None:
    from barnabas.client.cluster.authentication import sign_in
    from barnabas.client.cluster.tokens import Tokens

    await sign_in(channel, settings, chance, tokens or Tokens(settings))


def retrieved(task: asyncio.Task[Any]) -> None:
    """A task that several wait for may fail when none of them waits any more; that is no accident to report."""
    if not task.cancelled():
        task.exception()
