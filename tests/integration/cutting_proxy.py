"""A network that cuts connections: a TCP proxy that ends each connection after a seeded number of bytes.

The cut falls anywhere, also within a frame, and takes what is under way in both directions along: a client then does
not know whether its request was carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Self

CHUNK_BYTES = 4096
Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class CuttingProxy:
    """``port`` is known after ``start``; ``target`` may be set later. Without a budget nothing is cut."""

    def __init__(self, *, seed: int, bytes_min: int, bytes_max: int) -> None:
        self._random = random.Random(seed)
        self._limits = bytes_min, bytes_max
        self._tasks: set[asyncio.Task[None]] = set()
        self.target = ("", 0)
        self.port = 0
        self.cuts = 0
        self.is_cutting = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(0)  # transports that were aborted close in the loop's next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        budget = [self._random.randint(*self._limits)]
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                far_reader, far_writer = await asyncio.open_connection(*self.target)
                try:
                    await self._carry_both((reader, far_writer), (far_reader, writer), budget)
                finally:
                    far_writer.transport.abort()
        finally:
            writer.transport.abort()

    async def _carry_both(self, there: Way, back: Way, budget: list[int]) -> None:
        tasks = [asyncio.ensure_future(self._carry(*way, budget)) for way in (there, back)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, budget: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                if self.is_cutting and len(data) > budget[0]:
                    self.cuts += 1
                    target.write(data[: budget[0]])
                    await target.drain()
                    return
                budget[0] -= len(data)
                target.write(data)
                await target.drain()
