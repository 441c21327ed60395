"""Runs HTTP services in this process until it is told to stop; ``rest.py`` has all of them, ``registry.py`` one."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.rest.server import Server

BUSY: Final = 75  # the exit code for a port that another program has


class Served(NamedTuple):
    start: Callable[[], AbstractAsyncContextManager[Server]]
    port_option: str = "--port"  # that chooses another port


async def serve(services: list[Served], *, with_parent: bool = False) -> int:
    """Run services until a signal, the end of the parent, or the end of one of them; returns the exit code.

    A service whose port is busy is left out; with no service left the exit code is BUSY.
    """
    from barnabas.rest.server import PortBusy

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    stopping: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
    if with_parent:
        stopping.append(asyncio.ensure_future(parent_gone()))
    try:
        async with AsyncExitStack() as stack:
            servers = []
            for service in services:
                try:
                    servers.append(await stack.enter_async_context(service.start()))
                except PortBusy as error:
                    print(f"barnabas: {error}; {service.port_option} N takes another", file=sys.stderr, flush=True)
                    continue
                print(f"READY {servers[-1].url}", flush=True)
            if not servers:
                return BUSY
            ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(each.wait()) for each in servers]
            await asyncio.wait([*stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
            has_failed = any(each.done() for each in ends)
            for end in ends:
                end.cancel()
        return 1 if has_failed else 0
    finally:
        for waiting in stopping:
            waiting.cancel()


async def parent_gone() -> None:
    """Until standard input, a pipe that the parent holds, is closed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
