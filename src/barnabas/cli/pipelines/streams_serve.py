"""``barnabas streams serve``: stores and metrics of applications over HTTP, without Spark."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from barnabas.cli.serve.registry import add_access, tls_of, users_of
from barnabas.cli.terminal.connection import attend, settings_of
from barnabas.client.settings.client import Settings
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.rest.server import Server

HOST = "127.0.0.1"
PORT = 8084
MEBIBYTE = 1024 * 1024
VIEW_MB = 256
VIEWS_MB = 1024


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=int, default=PORT, metavar="N", help=f"port to listen on, 0 for a free one (default {PORT})")
    add("--host", default=HOST, metavar="ADDRESS", help=f"address to listen on (default {HOST})")
    add("--view-max-mb", type=int, default=VIEW_MB, metavar="N", help=f"memory of one store in MiB (default {VIEW_MB})")
    add("--views-max-mb", type=int, default=VIEWS_MB, metavar="N", help=f"memory of all stores (default {VIEWS_MB})")
    add_access(parser)


def run(arguments: Namespace) -> None:
    from barnabas.cli.serve.http_services import Served, serve
    from barnabas.observe.lines import write_logs

    write_logs()
    settings = settings_of(Settings, arguments, client_id="barnabas-streams")
    try:
        code = attend(serve([Served(lambda: served(arguments, settings))]), is_long=True)
    except InvalidSetting as error:
        raise Failure(str(error)) from error
    except ImportError as error:
        raise Failure(f"{error}: run `pip install 'barnabas[rest]'`") from error
    if code:
        raise Failure


@asynccontextmanager
async def served(arguments: Namespace, settings: Settings) -> AsyncIterator[Server]:
    from barnabas.client.cluster.cluster import Cluster
    from barnabas.rest.access import Access
    from barnabas.rest.server import Server
    from barnabas.streams.queries.service import QueryService, Views

    async with Cluster(settings) as cluster:
        views = Views(
            cluster,
            view_bytes_max=arguments.view_max_mb * MEBIBYTE,
            views_bytes_max=arguments.views_max_mb * MEBIBYTE,
        )
        service = QueryService(
            views,
            access=Access(listens_on=arguments.host, hosts=arguments.allowed_host, origins=arguments.allowed_origin),
            users=users_of(arguments, settings),
        )
        server = Server(service, host=arguments.host, port=arguments.port, tls=tls_of(arguments))
        server.bind()
        try:
            await server.start()
            yield server
        finally:
            await server.stop()
