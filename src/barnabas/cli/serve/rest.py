"""``barnabas rest``: the HTTP services of a cluster in one process, as ``barnabas up`` starts it beside its broker.

Each service that listens is announced on standard output by a line ``READY url``. The process ends when it is told to,
or when the pipe of its parent closes.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from barnabas.cli.serve import console, registry
from barnabas.cli.serve.http_services import Served, serve
from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.cli.terminal.rest_services import SERVICES, address_of_service
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.rest.server import Server

    Start: TypeAlias = Callable[[], AbstractAsyncContextManager[Server]]


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)")
    add("--console-port", type=int, metavar="N", help="run the console at this port")
    add("--registry-port", type=int, metavar="N", help="run the schema registry at this port")
    add("--connect", metavar="URL", help="URL of Connect's REST API, for the console")
    add("--with-parent", action="store_true", help="stop when standard input is closed")
    add_connection(parser)


def run(arguments: Namespace) -> int:
    from barnabas.observe.lines import write_logs

    write_logs()
    ports = {name: getattr(arguments, f"{name}_port") for name in SERVICES}
    wanted = {name: port for name, port in ports.items() if port is not None} or {
        name: service.port for name, service in SERVICES.items()
    }
    for name in wanted:
        if SERVICES[name].missing:
            raise Failure(f"the {name} needs {', '.join(SERVICES[name].missing)}: {SERVICES[name].install}")
    # The console first: a page should be there at once, and the registry reads its topic before it answers.
    services = [Served(_STARTS[name](arguments, port, wanted), f"--{name}-port") for name, port in wanted.items()]
    return attend(serve(services, with_parent=arguments.with_parent), is_long=True)


def _console(arguments: Namespace, port: int, wanted: dict[str, int]) -> Start:
    options = Namespace(**vars(arguments))
    options.__dict__ |= console.defaults() | {"host": address_of_service("console", arguments.host), "port": port}
    options.connect = arguments.connect
    if "registry" in wanted:
        options.schema_registry = f"http://{arguments.host}:{wanted['registry']}"
    return lambda: console.served(options)


def _registry(arguments: Namespace, port: int, _: dict[str, int]) -> Start:
    settings = settings_of(Settings, arguments, client_id="barnabas-registry")
    options = Namespace(
        host=arguments.host,
        port=port,
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
    return lambda: registry.served(options, settings)


_STARTS = {"console": _console, "registry": _registry}
