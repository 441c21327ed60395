"""Accepts connections on one address, counts them, limits them and sees the idle ones off.

What is said on a connection is ``transport.connection``'s; who may say it is the broker's. A node opens one listener
for each entry of ``listeners``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Connection, Serve
from barnabas.world.clock import Clock
from barnabas.world.timers import Timer, Timers

HANDSHAKE_SECONDS_MAX: Final = 10.0  # a peer that connects and says nothing is not waited for any longer
IDLE_CHECKS: Final = 4  # how often in one idle time-out the connections are looked at


@dataclass(frozen=True, slots=True)
class Limits:
    frame_bytes_max: int = 100 * 1024 * 1024
    connections_max: int = 2**31 - 1
    connections_per_address_max: int = 2**31 - 1
    idle_ms_max: int = 600_000
    backlog_max: int = 1024  # connections that wait to be accepted
    connections_of_address_max: Mapping[str, int] = field(default_factory=dict)  # where it differs from the others


class Guests:
    """The connections of several listeners together: how many, and how many from which address."""

    __slots__ = ("per_address", "total")

    def __init__(self) -> None:
        self.total = 0
        self.per_address: Counter[str] = Counter()

    def come(self, address: str) -> None:
        self.total += 1
        self.per_address[address] += 1

    def go(self, address: str) -> None:
        self.total -= 1
        self.per_address[address] -= 1
        if not self.per_address[address]:
            del self.per_address[address]


class Listener:
    def __init__(self, name: str, serve: Serve, pool: FramePool, clock: Clock, timers: Timers, limits: Limits):
        self.name = name
        self.guests = Guests()  # its own, unless it shares them with others before it serves
        self.is_protected = False  # whether it is open to more than all listeners together may have
        self.limits = limits
        self._serve = serve
        self._pool = pool
        self._clock = clock
        self._timers = timers
        self._connections: dict[Connection, int] = {}  # requests seen at the last idle check
        self._server: asyncio.Server | None = None
        self._idle_timer: Timer | None = None
        self._emptied = asyncio.Event()
        self._is_stopping = False
        self.pace: Callable[[str], tuple[int, bool]] = lambda _: (0, False)  # how fast an address may come
        self.accepted_count = 0
        self.refused_count = 0
        self.host = ""
        self.port = 0

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def bind(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Take the address; afterwards ``port`` is the real one. Clients are let in by ``serve``."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept,
            host or None,
            port,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX if tls is not None else None,
            backlog=self.limits.backlog_max,
            start_serving=False,
        )
        self.host = host
        self.port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        assert self._server is not None, "bind comes first"
        await self._server.start_serving()
        self._look_for_idle()

    def close(self) -> None:
        """Give the address back and see off whoever waits for nothing; the others once they have their answer."""
        self._is_stopping = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            if connection.is_busy:
                connection.is_last_answer = True
            else:
                connection.close()

    async def stop(self) -> None:
        self.close()
        for connection in list(self._connections):
            await connection.cut_off()
        if self._connections:
            await self._emptied.wait()

    def _accept(self) -> Connection:
        return Connection(
            self,
            self._serve,
            self._pool,
            listener_name=self.name,
            frame_bytes_max=self.limits.frame_bytes_max,
            now_ns=self._clock.monotonic_ns,
        )

    def admit(self, connection: Connection) -> bool:
        connection.active_ms = self._clock.monotonic_ms()
        address = connection.peer[0]
        guests, limits = self.guests, self.limits
        guests.come(address)
        self._connections[connection] = -1
        of_address_max = limits.connections_of_address_max.get(address, limits.connections_per_address_max)
        self.accepted_count += 1
        has_room = guests.total <= limits.connections_max or self.is_protected
        if has_room and guests.per_address[address] <= of_address_max and not self._is_stopping:
            self._keep_pace(connection)
            return True
        self.refused_count += 1
        return False

    def _keep_pace(self, connection: Connection) -> None:
        """Whoever comes too fast waits, and is turned away then if that is what it gets."""
        wait_ms, is_refused = self.pace(connection.peer[0])
        if not wait_ms:
            return
        if is_refused:
            self.refused_count += 1
            connection.hold(self._timers, wait_ms + 1)
            self._timers.after(wait_ms, connection.close)
        else:
            connection.hold(self._timers, wait_ms)

    def forget(self, connection: Connection) -> None:
        if self._connections.pop(connection, None) is None:
            return
        self.guests.go(connection.peer[0])
        if not self._connections and self._is_stopping:
            self._emptied.set()

    def _look_for_idle(self) -> None:
        """A connection without a request since the last look, and the one before it, ... is closed."""
        self._idle_timer = self._timers.after(self.limits.idle_ms_max // IDLE_CHECKS, self._look_for_idle)
        now_ms = self._clock.monotonic_ms()
        for connection, requests in list(self._connections.items()):
            if connection.requests != requests:
                self._connections[connection] = connection.requests
                connection.active_ms = now_ms
            elif not connection.is_busy and now_ms - connection.active_ms >= self.limits.idle_ms_max:
                connection.close()
