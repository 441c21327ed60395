"""A small HTTP server for pages that programs read: one GET, one response, and the connection is closed.

The server knows paths and pages, nothing of brokers. A page is rendered piece by piece, and other tasks run in between,
so that a large page does not block the event loop. Requests are bounded in size and time; methods other than GET and
HEAD are refused. A page that raises is answered with 500, and the exception is logged.
"""

from __future__ import annotations

import asyncio
import errno
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.observe.log import logger
from barnabas.world.tasks import Tasks

log = logger("http")

HEAD_BYTES_MAX: Final = 8192
CONNECTIONS_MAX: Final = 64
PORTS_TRIED_MAX: Final = 100
REQUEST_SECONDS_MAX: Final = 10.0
PIECES_PER_TURN: Final = 100  # a few milliseconds
TURN_SECONDS_MAX: Final = 0.002  # some pieces take long to make
PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Page(NamedTuple):
    status: int
    pieces: Iterable[str]
    content_type: str = PLAIN


Pages: TypeAlias = "Mapping[str, Callable[[], Page]]"


class HttpServer:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._tasks = Tasks()
        self._open: OrderedDict[asyncio.Task[None], asyncio.Task[None]] = OrderedDict()  # by age
        self.host = ""
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, host or None, port, limit=HEAD_BYTES_MAX)
        self.host, self.port = host, self._server.sockets[0].getsockname()[1]

    async def start_at_first_free(self, host: str, port: int) -> None:
        """At this port or, if somebody has it, at the next one that is free; far above it, at any."""
        for wanted in range(port, port + PORTS_TRIED_MAX):
            try:
                await self.start(host, wanted)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        await self.start(host, 0)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._tasks.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            # Slow clients may hold all places, and health checks must get through: the oldest connection ends.
            self._open.popitem(last=False)[1].cancel()
        task = self._tasks.start(self._serve(reader, writer), "http")
        self._open[task] = task
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await self._answer(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone or is too slow; nobody is left to answer
        finally:
            writer.transport.abort()  # without effect on a connection that was closed above

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            head, page = b"", _says(400, "the head of the request is too long")
            body = await _joined(page.pieces)
        else:
            page, body = await self._rendered(head.split(b"\r\n", 1)[0])
        lines = (
            f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        )
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if head.startswith(b"HEAD ") else body))
        await writer.drain()

    async def _rendered(self, request_line: bytes) -> tuple[Page, bytes]:
        try:
            page = self._page(request_line)
            return page, await _joined(page.pieces)
        except Exception:  # a page may fail in any way, and the client waits for a response
            log.exception("page failed", request=request_line.decode(errors="replace"))
            page = _says(500, "the page could not be rendered; the log has the reason")
            return page, await _joined(page.pieces)

    def _page(self, request_line: bytes) -> Page:
        words = request_line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _says(400, "this is not HTTP/1.1")
        method, target = words[0], words[1].decode(errors="replace")
        if method not in (b"GET", b"HEAD"):
            return _says(405, "only GET and HEAD are understood")
        page = self._pages.get(target) or self._pages.get(target.partition("?")[0])
        return _says(404, f"there are {', '.join(self._pages)}") if page is None else page()


def _says(status: int, sentence: str) -> Page:
    return Page(status, (f"{sentence}\n",))


async def _joined(pieces: Iterable[str]) -> bytes:
    found: list[str] = []
    now = asyncio.get_running_loop().time
    turn_end = now() + TURN_SECONDS_MAX
    for number, piece in enumerate(pieces, 1):
        found.append(piece)
        if number % PIECES_PER_TURN == 0 or now() >= turn_end:
            await asyncio.sleep(0)
            turn_end = now() + TURN_SECONDS_MAX
    return "".join(found).encode()
