"""``barnabas rest``: the HTTP services of a cluster in one process, as ``barnabas up`` starts it beside its broker.

Each service that listens is announced on standard output by a line ``READY url``. The process ends when it is told to,
or when the pipe of its parent closes.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.serve.registry import SERVICE as REGISTRY
from barnabas.cli.serve.registry import served as registry_served
from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.rest.server import Server

BUSY: Final = 75  # the exit code for a port that another program has


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)")
    add("--registry-port", type=int, default=REGISTRY.port, metavar="N", help="port of the schema registry")
    add("--with-parent", action="store_true", help="stop when standard input is closed")
    add_connection(parser)


def run(arguments: Namespace) -> int:
    from barnabas.observe.lines import write_logs

    write_logs()
    if REGISTRY.missing:
        raise Failure(f"the registry needs {', '.join(REGISTRY.missing)}: {REGISTRY.install}")
    settings = settings_of(Settings, arguments, client_id="barnabas-registry")
    options = Namespace(
        host=arguments.host,
        port=arguments.registry_port,
        advertised_url=None,
        group="schema-registry",
        allowed_host=[],
        allowed_origin=[],
        users=None,
        cluster_users=False,
        permissions=None,
        tls_keystore=None,
        tls_truststore=None,
    )
    work = serve([lambda: registry_served(options, settings)], with_parent=arguments.with_parent)
    return attend(work, is_long=True)


async def serve(services: list[Callable[[], AbstractAsyncContextManager[Server]]], *, with_parent: bool = False) -> int:
    """Run services until a signal, the end of the parent, or the end of one of them; returns the exit code."""
    from barnabas.rest.server import PortBusy

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    stopping: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
    if with_parent:
        stopping.append(asyncio.ensure_future(_parent_gone()))
    try:
        async with AsyncExitStack() as stack:
            servers = []
            for service in services:
                try:
                    servers.append(await stack.enter_async_context(service()))
                except PortBusy as error:
                    print(f"barnabas: {error}; --port N takes another", file=sys.stderr)
                    return BUSY
                print(f"READY {servers[-1].url}", flush=True)
            ends: list[asyncio.Future[Any]] = [asyncio.ensure_future(each.wait()) for each in servers]
            await asyncio.wait([*stopping, *ends], return_when=asyncio.FIRST_COMPLETED)
            has_failed = any(each.done() for each in ends)
            for end in ends:
                end.cancel()
        return 1 if has_failed else 0
    finally:
        for waiting in stopping:
            waiting.cancel()


async def _parent_gone() -> None:
    """Until standard input, a pipe that the parent holds, is closed."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
