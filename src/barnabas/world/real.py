"""The operating system as the world: its clocks, its randomness, its threads, the fastest event loop there is.

The disk has a module of its own, ``real_disk``. Only the command line and the test tools choose this world; all other
code is handed one.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.model.ids import Uuid
from barnabas.world.entropy import random_uuid
from barnabas.world.real_disk import RealDisk
from barnabas.world.world import World

if TYPE_CHECKING:
    from asyncio.trsock import TransportSocket

__all__ = ["RealClock", "RealDisk", "RealEntropy", "RealWorkers", "new_event_loop", "real_world"]

PORTS: Final = range(10_000, 32_768)  # for brokers of tests and of clusters on one machine
WORKER_THREADS_MAX: Final = 2

T = TypeVar("T")


class RealClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    # Asked for every record that is sent and all that is received: no function of ours in between.
    wall_ns = staticmethod(time.time_ns)
    monotonic_ns = staticmethod(time.monotonic_ns)

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def thread_ns(self) -> int:
        return time.thread_time_ns()

    def on_jump(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Nobody moves this clock by hand, so there is nothing to call."""
        return _nothing


def _nothing() -> None:
    pass


class RealEntropy:
    def token(self, size_bytes: int) -> bytes:
        return os.urandom(size_bytes)

    def below(self, limit: int) -> int:
        """What ``secrets`` does, whose import takes longer than a small command should."""
        assert limit > 0
        bits = limit.bit_length()
        size_bytes = (bits + 7) // 8
        while (value := int.from_bytes(os.urandom(size_bytes), "big") >> (8 * size_bytes - bits)) >= limit:
            pass
        return value

    def uuid(self) -> Uuid:
        return random_uuid(os.urandom)


class RealWorkers:
    """A few threads, for native calls that let go of the interpreter lock; started when they are first needed."""

    def __init__(self, *, threads_max: int = WORKER_THREADS_MAX) -> None:
        self._executor = ThreadPoolExecutor(threads_max, thread_name_prefix="barnabas-worker")

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.wrap_future(self._executor.submit(work, *arguments))

    async def close(self) -> None:
        """Work is pure, so what has not begun is dropped and what runs is left to end by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def real_world() -> World:
    return World(clock=RealClock(), disk=RealDisk(), entropy=RealEntropy(), workers=RealWorkers())


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def size_buffers(connected: TransportSocket, send_bytes: int, receive_bytes: int) -> None:
    """Of a socket; what is negative stays as the system has it."""
    for option, size_bytes in ((socket.SO_SNDBUF, send_bytes), (socket.SO_RCVBUF, receive_bytes)):
        if size_bytes >= 0:
            connected.setsockopt(socket.SOL_SOCKET, option, size_bytes)


def free_ports(host: str, count: int) -> list[int]:
    """Ports that were free a moment ago; they are all held until the last is found, so that none comes twice.

    Not of those that the system gives to outgoing connections: one of these might be taken while a broker restarts.
    """
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            try:
                held.append(socket.create_server((host, PORTS[RealEntropy().below(len(PORTS))])))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
