"""A proxy that tampers with what a broker answers: nonsense, cut frames, lengths that lie, answers that never come.

It knows which answer belongs to which request, as the client does, so that a tamperer can pick the APIs that it likes.
The broker behind it is a real one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Self

from barnabas.wire.frame import decode_request_header


class Asked(NamedTuple):
    api_key: int
    api_version: int


# What is sent instead of a frame (its size included); None says nothing and keeps the connection open.
Tamper = Callable[[Asked, bytes], bytes | None]


class Cut(Exception):
    """Raised by a tamperer to send these bytes and end the connection."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content


def honest(asked: Asked, frame: bytes) -> bytes:
    return frame


class TamperingProxy:
    def __init__(self) -> None:
        self.tamper: Tamper = honest
        self.target = ("", 0)
        self.port = 0
        self.tampered = 0
        self._accepted = 0
        self._frozen = 0  # of the accepted connections, the first ones
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.drop()

    async def drop(self) -> None:
        """End all connections."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await asyncio.sleep(0)

    def freeze(self) -> None:
        """From now on no answer arrives on the connections of now; new ones work."""
        self._frozen = self._accepted

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asked: deque[Asked] = deque()
        self._accepted += 1
        number = self._accepted
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                far_reader, far_writer = await asyncio.open_connection(*self.target)
                try:
                    ways = [
                        asyncio.ensure_future(self._there(reader, far_writer, asked)),
                        asyncio.ensure_future(self._back(far_reader, writer, asked, number)),
                    ]
                    try:
                        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for way in ways:
                            way.cancel()
                        await asyncio.wait(ways)
                        for way in ways:
                            if not way.cancelled():
                                way.exception()
                finally:
                    far_writer.transport.abort()
        finally:
            writer.close()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Asked]) -> None:
        while True:
            size = await reader.readexactly(4)
            frame = await reader.readexactly(int.from_bytes(size, "big"))
            header, _ = decode_request_header(frame)
            asked.append(Asked(header.api_key, header.api_version))
            writer.write(size + frame)
            await writer.drain()

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Asked], number: int
    ) -> None:
        while True:
            size = await reader.readexactly(4)
            frame = size + await reader.readexactly(int.from_bytes(size, "big"))
            if number <= self._frozen:
                continue
            try:
                answer = self.tamper(asked.popleft(), frame)
            except Cut as cut:
                self.tampered += 1
                writer.write(cut.content)
                await writer.drain()
                return
            self.tampered += answer != frame
            if answer is not None:
                writer.write(answer)
                await writer.drain()
