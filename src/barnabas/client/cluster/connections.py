"""A client's connection to one broker: the lane with the client's settings, throttling and error types.

A request that blocks its connection (a long poll) takes another connection than requests that must not wait behind it.
``cluster.py`` decides which broker to ask and whether to retry; ``transport.lane`` has the connection itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.client.errors import Garbled, TimedOut
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.transport.lane import Lane, LaneOptions
from barnabas.transport.versions import NO_LIMIT, ApiRanges, Shaped
from barnabas.wire.message import Message, Unencodable

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.client.cluster.tokens import Tokens
    from barnabas.transport.channel import Channel
    from barnabas.transport.sign_in import Credentials

R = TypeVar("R", bound=Message)

CLOSE_SECONDS_MAX: Final = 1.0


class Connection:
    def __init__(
        self, host: str, port: int, *, settings: Settings, chance: Callable[[int], int], tokens: Tokens | None = None
    ) -> None:
        self.host = host
        self.port = port
        self._settings = settings
        self._lane = Lane(host, port, _lane_options(settings, tokens), chance)

    @property
    def ranges(self) -> ApiRanges:
        """The API versions of the broker, known once the connection is open."""
        return self._lane.ranges

    @property
    def is_open(self) -> bool:
        return self._lane.is_open

    @property
    def in_flight(self) -> int:
        return self._lane.in_flight

    async def open(self) -> Channel:
        """Open the connection, unless it is open: ``ranges`` are the broker's then."""
        try:
            return await self._lane.open()
        except Malformed as error:
            raise self._garbled(error) from error

    async def call(
        self,
        message: Message | Shaped,
        response: type[R],
        *,
        timeout_ms: int | None = None,
        version_max: int = NO_LIMIT,
    ) -> R:
        """Send the request once and return the response, in the highest version that both sides know."""
        timeout_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        try:
            answer = await self._lane.send(message, timeout_ms=timeout_ms, version_max=version_max)
        except Malformed as error:
            raise self._garbled(error) from error
        except Unencodable as error:
            # The version that the broker knows has no field for what the caller asks for.
            raise ApiError(
                errors.UNSUPPORTED_VERSION, f"{_name(message)} to {self.host}:{self.port}: {error}"
            ) from error
        except TimeoutError:
            name = _name(message)
            raise TimedOut(f"{self.host}:{self.port} did not answer {name} within {timeout_ms} ms") from None
        assert isinstance(answer, response)
        throttle_time_ms: int = getattr(answer, "throttle_time_ms", 0)
        if throttle_time_ms > 0:  # the broker asks for a pause (KIP-219)
            quiet_until = asyncio.get_running_loop().time() + throttle_time_ms / 1000
            self._lane.quiet_until = max(self._lane.quiet_until, quiet_until)
        return answer

    async def cast(self, message: Message, *, version_max: int = NO_LIMIT) -> None:
        """Send a request that has no response."""
        try:
            await self._lane.send_silent(message, version_max=version_max)
        except Malformed as error:
            raise self._garbled(error) from error

    def drop(self) -> None:
        """Close the connection; the next request opens another one."""
        self._lane.close()

    async def close(self) -> None:
        """Close the connection for good. Requests that were written still leave, if the broker reads them in time."""
        self._lane.stop(has_time=True)
        await self._lane.wait_stopped(seconds_max=CLOSE_SECONDS_MAX)

    def _garbled(self, error: Malformed) -> Garbled:
        return Garbled(f"{self.host}:{self.port}: {error}")


def _name(message: Message | Shaped) -> str:
    return (message.request if isinstance(message, Shaped) else type(message)).__name__


def _lane_options(settings: Settings, tokens: Tokens | None) -> LaneOptions:
    # Most commands talk to a broker on the same machine, so the modules for security are imported when they are needed.
    def tls() -> SSLContext | None:
        if not settings.has_tls:
            return None
        from barnabas.client.cluster.authentication import tls_context

        return tls_context(settings)

    async def prove() -> Credentials:
        from barnabas.client.cluster.authentication import credentials

        return await credentials(settings, tokens)

    return LaneOptions(
        client_id=settings.client_id,
        setup_timeout_ms=settings.socket_connection_setup_timeout_ms,
        setup_timeout_max_ms=settings.socket_connection_setup_timeout_max_ms,
        handshake_timeout_ms=settings.request_timeout_ms,
        backoff_ms=settings.reconnect_backoff_ms,
        backoff_max_ms=settings.reconnect_backoff_max_ms,
        idle_max_ms=settings.connections_max_idle_ms,
        frame_bytes_max=settings.receive_frame_max_bytes,
        send_buffer_bytes=settings.send_buffer_bytes,
        receive_buffer_bytes=settings.receive_buffer_bytes,
        tls=tls,
        prove=prove if settings.has_sasl else None,
    )
