"""``barnabas console``: serve the web console of one cluster, or of several by their profiles.

``barnabas up`` runs the same beside its broker, through ``rest.py``. Without ``--login`` the console listens on
loopback only.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.serve.registry import tls_of
from barnabas.cli.terminal.connection import (
    DEFAULT_SERVERS,
    REGISTRY_LOGIN,
    REGISTRY_URL,
    add_connection,
    attend,
    client_settings,
    pairs,
    without_registry,
)
from barnabas.cli.terminal.rest_services import SERVICES
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.console.clusters import ClusterSource
    from barnabas.rest.server import Server

SERVICE: Final = SERVICES["console"]
HOST: Final = "127.0.0.1"


def defaults() -> dict[str, Any]:
    """Options of a console that runs beside a broker."""
    return {
        "clusters": [],
        "colors": [],
        "login": False,
        "read_only": False,
        "schema_registry": None,
        "allowed_host": [],
        "allowed_origin": [],
        "tls_keystore": None,
    }


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--port", type=int, default=SERVICE.port, metavar="N", help="port to listen on, 0 for a free one (default 8080)"
    )
    add("--host", default=HOST, metavar="ADDRESS", help=f"address to listen on (default {HOST})")
    add(
        "--cluster",
        dest="clusters",
        action="append",
        default=[],
        metavar="PROFILE",
        help="serve the cluster of a profile; repeatable (default: --bootstrap-server, else the profile in use)",
    )
    add("--color", dest="colors", action="append", default=[], metavar="CLUSTER=COLOR", help=_COLOR_HELP)
    add("--login", action="store_true", help="require a login with a SASL user of the cluster; the console acts as it")
    add("--read-only", action="store_true", help="refuse all changes")
    add("--schema-registry", metavar="URL", help="URL of the schema registry")
    add("--allowed-host", action="append", default=[], metavar="NAME", help="host name to accept; repeatable")
    add("--allowed-origin", action="append", default=[], metavar="URL", help="web origin to accept; repeatable")
    add("--tls-keystore", metavar="FILE", help="serve HTTPS with the key and certificates of a PEM file")
    add_connection(parser)


_COLOR_HELP: Final = "color of an environment, shown in the frame of its pages: red, amber, green, blue; repeatable"
COLORS: Final = ("red", "amber", "green", "blue")


def run(arguments: Namespace) -> int:
    if SERVICE.missing:
        raise Failure(f"the console needs {', '.join(SERVICE.missing)}: {SERVICE.install}")
    from barnabas.cli.serve.http_services import Served, serve
    from barnabas.observe.lines import write_logs

    write_logs()
    try:
        return attend(serve([Served(lambda: served(arguments))]), is_long=True)
    except InvalidSetting as error:
        raise Failure(str(error)) from error


@asynccontextmanager
async def served(arguments: Namespace) -> AsyncIterator[Server]:
    """A console that listens, until the block ends; raises PortBusy before anything else is started."""
    from barnabas.console.application import Console
    from barnabas.console.clusters import Clusters
    from barnabas.rest.access import Access, is_loopback
    from barnabas.rest.server import Server

    if not arguments.login and not is_loopback(arguments.host):
        raise Failure(
            f"without --login the console listens on loopback only, and {arguments.host} is not: pass --login, which "
            "needs SASL users in the cluster"
        )
    sources = _sources(arguments)
    if arguments.login:
        for source in sources:
            if not source.settings.get("security.protocol", "").upper().startswith("SASL"):
                raise Failure(
                    f"--login needs security.protocol=SASL_SSL or SASL_PLAINTEXT and sasl.mechanism for {source.name}"
                )
    console = Console(
        Clusters(sources),
        access=Access(listens_on=arguments.host, hosts=arguments.allowed_host, origins=arguments.allowed_origin),
        requires_login=arguments.login,
        is_read_only=arguments.read_only,
        is_tls=arguments.tls_keystore is not None,
    )
    server = Server(console, host=arguments.host, port=arguments.port, tls=tls_of(arguments))
    server.bind()
    console.cookie = f"barnabas-console-{server.port}"
    try:
        await server.start()
        yield server
    finally:
        await server.stop()
        await console.close()


def _sources(arguments: Namespace) -> list[ClusterSource]:
    from barnabas.cli.terminal.profiles import existing, profile_in_use, read_client_config

    colors = pairs(arguments.colors)
    for color in colors.values():
        if color not in COLORS:
            raise Failure(f"there is no color {color!r}; pass one of {', '.join(COLORS)}")
    if arguments.clusters:
        return [
            _source(name, {**read_client_config(existing(name)), **pairs(arguments.properties)}, arguments, colors)
            for name in dict.fromkeys(arguments.clusters)
        ]
    given = client_settings(arguments)
    if arguments.servers is not None:
        given["bootstrap.servers"] = arguments.servers
    named = getattr(arguments, "profile", None) or (None if arguments.servers else profile_in_use())
    return [_source(named or "local", given, arguments, colors)]


def _source(name: str, given: dict[str, str], arguments: Namespace, colors: dict[str, str]) -> ClusterSource:
    from barnabas.console.clusters import ClusterSource

    is_only = len(arguments.clusters) <= 1
    return ClusterSource(
        name=name,
        settings={"bootstrap.servers": DEFAULT_SERVERS, **without_registry(given)},
        registry_url=(arguments.schema_registry if is_only else None) or given.get(REGISTRY_URL),
        registry_login=given.get(REGISTRY_LOGIN, ""),
        color=colors.get(name, ""),
    )
