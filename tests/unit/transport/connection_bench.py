"""A listener and its clients on a simulated loop, and the frames they exchange. Shared by the tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from struct import pack
from typing import Any

from barnabas.testing.loop import simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Answer, Connection
from barnabas.transport.listener import Limits, Listener
from barnabas.world.timers import Timers


def frame(payload: bytes) -> bytes:
    return pack(">i", len(payload)) + payload


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = bytearray()
        self.is_lost = False
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 60)

    def frames(self) -> list[bytes]:
        found, position = [], 0
        while position + 4 <= len(self.data):
            size = int.from_bytes(self.data[position : position + 4], "big")
            if position + 4 + size > len(self.data):
                break
            found.append(bytes(self.data[position + 4 : position + 4 + size]))
            position += 4 + size
        return found


class Bench:
    """A listener and clients on a simulated loop."""

    def __init__(self, serve: Callable[[Connection, memoryview], Answer], limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        self.world = simulated_world(loop, seed=1)  # type: ignore[arg-type]
        self.timers = Timers(self.world.clock)
        self.listener = Listener("PLAINTEXT", serve, FramePool(), self.world.clock, self.timers, limits)

    async def client(self) -> Client:
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(Client, "127.0.0.1", self.listener.port)
        return client


def run(
    serve: Callable[[Connection, memoryview], Answer],
    story: Callable[[Bench], Coroutine[Any, Any, None]],
    *,
    seed: int = 0,
    limits: Limits | None = None,
) -> None:
    async def main() -> None:
        bench = Bench(serve, limits or Limits())
        await bench.listener.bind("127.0.0.1", 0)
        await bench.listener.serve()
        try:
            await story(bench)
        finally:
            await bench.listener.stop()
            bench.timers.close()

    simulate(main, seed=seed)


def echo(_: Connection, request: memoryview) -> Answer:
    return [frame(bytes(request))]
