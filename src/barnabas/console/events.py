"""Responses that stream: server-sent events, and files that are made on the way.

Each has a task that produces it and a short queue, so that a slow browser slows the search down and a browser that goes
away cancels it. The number of such tasks is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure
from barnabas.rest.errors import RestError

QUEUE_CHUNKS_MAX: Final = 4

_encode: Final = msgspec.json.Encoder().encode


class Streams:
    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._pumps: set[asyncio.Task[None]] = set()

    def response(
        self, source: AsyncGenerator[bytes], media_type: str, headers: Mapping[str, str] | None = None
    ) -> StreamingResponse:
        """Stream ``source``; RestError if too many responses stream already."""
        if len(self._pumps) >= self._count_max:
            raise RestError(429, f"{self._count_max} searches are running already: stop one, or try again later")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE_CHUNKS_MAX)
        pump = asyncio.ensure_future(_pump(source, queue))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return _Streamed(pump, queue, media_type=media_type, headers=headers)

    def events(self, source: AsyncGenerator[tuple[str, Any]]) -> StreamingResponse:
        return self.response(_as_events(source), "text/event-stream", {"X-Accel-Buffering": "no"})

    async def close(self) -> None:
        pumps = list(self._pumps)
        for pump in pumps:
            pump.cancel()
        if pumps:
            await asyncio.wait(pumps)


class _Streamed(StreamingResponse):
    def __init__(self, pump: asyncio.Task[None], queue: asyncio.Queue[bytes | None], **options: Any) -> None:
        super().__init__(_drained(pump, queue), **options)
        self._pump = pump

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pump.cancel()


async def _pump(source: AsyncGenerator[bytes], queue: asyncio.Queue[bytes | None]) -> None:
    try:
        async with aclosing(source):
            async for chunk in source:
                await queue.put(chunk)
    except asyncio.CancelledError:
        raise
    except BaseException:
        await queue.put(None)
        raise
    await queue.put(None)


async def _drained(pump: asyncio.Task[None], queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (chunk := await queue.get()) is not None:
        yield chunk
    await pump  # raises what went wrong


async def _as_events(source: AsyncGenerator[tuple[str, Any]]) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(source):
            async for name, data in source:
                yield b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(data))
    except (BarnabasError, Failure) as error:
        yield b"event: failed\ndata: %s\n\n" % _encode({"message": str(error)})
