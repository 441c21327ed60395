"""Listens for HTTP services with uvicorn.

It binds first, so that a busy port is an error of its own, and stops gracefully. Several servers can run on one event
loop. Signals are the caller's.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from barnabas.model.errors import BarnabasError

CONNECTIONS_MAX: Final = 1000
BACKLOG: Final = 512
HEAD_SECONDS_MAX: Final = 20.0  # from the connection to the end of the first request's head
HEAD_BYTES_MAX: Final = 64 * 1024
KEEP_ALIVE_SECONDS: Final = 75
STOP_SECONDS_MAX: Final = 10  # for requests under way


class PortBusy(BarnabasError):
    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} of {host or 'this machine'} is in use by another program")
        self.port = port


class Server:
    """``await server.start()``, then ``server.url``, then ``await server.stop()``."""

    def __init__(self, application: ASGIApp, *, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._application = application
        self._tls = tls
        self.host = host
        self.port = port
        self._listening: socket.socket | None = None
        self._server: _Uvicorn | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self._tls is None else 'https'}://{shown}:{self.port}"

    def bind(self) -> None:
        """Take the port, without serving yet; raises PortBusy, or OSError for an address of another machine."""
        self._listening = _listen(self.host, self.port)
        self.port = self._listening.getsockname()[1]

    async def start(self) -> None:
        """Serve; raises what ``bind`` raises if that was not called before."""
        if self._listening is None:
            self.bind()
        assert self._listening is not None
        listening, self._listening = self._listening, None
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        tls = self._tls
        config = uvicorn.Config(
            self._application,
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")],
            limit_concurrency=CONNECTIONS_MAX,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        self._server = _Uvicorn(config)
        self._running = asyncio.ensure_future(self._server.serve(sockets=[listening]))
        while not self._server.started:
            if self._running.done():
                self._running.result()
            await asyncio.sleep(0)

    async def wait(self) -> None:
        """Until it stops, or fails."""
        assert self._running is not None
        await asyncio.shield(self._running)

    async def stop(self) -> None:
        """Stop accepting, let requests under way finish for a while, close."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._server is not None and self._running is not None:
            self._server.should_exit = True
            await asyncio.wait([self._running])
            self._server = self._running = None


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(HttpToolsProtocol):
    """Closes connections whose first request does not come, or whose head does not end."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX * 2:
            transport.abort()
            return
        self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head_timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > HEAD_BYTES_MAX:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS_MAX, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = _resolved(host, port)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise PortBusy(host, port) from error
        raise
    listening.setblocking(False)
    return listening


def _resolved(host: str, port: int) -> Any:
    return socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
