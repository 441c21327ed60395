"""``barnabas registry``: run the schema registry alone, for a cluster that runs elsewhere or needs authentication.

``barnabas up`` runs the same beside its broker, through ``rest.py``. Of several processes for one cluster one leads;
the others answer reads and forward writes.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.cli.terminal.rest_services import SERVICES
from barnabas.client.settings.client import Settings
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    import ssl

    from barnabas.rest.server import Server
    from barnabas.rest.service import Users

HOST = "127.0.0.1"
SERVICE = SERVICES["registry"]


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--port", type=int, default=SERVICE.port, metavar="N", help="port to listen on, 0 for a free one (default 8081)"
    )
    add("--host", default=HOST, metavar="ADDRESS", help=f"address to listen on (default {HOST})")
    add("--advertised-url", metavar="URL", help="URL at which other registries reach this one (default: host and port)")
    add("--group", default="schema-registry", metavar="NAME", help="consumer group that elects the leader")
    add_access(parser)
    add("--permissions", type=Path, metavar="FILE", help="TOML file with the users' permissions by subject")
    add_connection(parser)


def add_access(parser: ArgumentParser) -> None:
    """Options about who reaches an HTTP service, and how."""
    add = parser.add_argument
    add("--allowed-host", action="append", default=[], metavar="NAME", help="host name to accept; repeatable")
    add("--allowed-origin", action="append", default=[], metavar="URL", help="web origin to accept; repeatable")
    add(
        "--users",
        type=Path,
        metavar="FILE",
        help="require basic authentication with the users of a file (name=password)",
    )
    add("--cluster-users", action="store_true", help="require basic authentication with the cluster's SASL users")
    add("--tls-keystore", metavar="FILE", help="serve HTTPS with the key and certificates of a PEM file")
    add(
        "--tls-truststore", metavar="FILE", help="PEM file with the certificates to trust when forwarding to the leader"
    )


def run(arguments: Namespace) -> int:
    if SERVICE.missing:
        raise Failure(f"the registry needs {', '.join(SERVICE.missing)}: {SERVICE.install}")
    from barnabas.cli.serve.http_services import Served, serve
    from barnabas.observe.lines import write_logs

    write_logs()
    settings = settings_of(Settings, arguments, client_id="barnabas-registry")
    try:
        return attend(serve([Served(lambda: served(arguments, settings))]), is_long=True)
    except InvalidSetting as error:
        raise Failure(str(error)) from error


@asynccontextmanager
async def served(arguments: Namespace, settings: Settings) -> AsyncIterator[Server]:
    """A registry that listens, until the block ends; raises PortBusy before anything else is started."""
    from barnabas.registry.api.application import RegistryService
    from barnabas.registry.permissions import Permissions
    from barnabas.registry.service import SchemaRegistry
    from barnabas.rest.access import Access
    from barnabas.rest.server import Server

    registry = SchemaRegistry(settings, group=arguments.group)
    hosts = list(arguments.allowed_host)
    if arguments.advertised_url:
        hosts.append(arguments.advertised_url.partition("://")[2].partition("/")[0])
    service = RegistryService(
        registry,
        access=Access(listens_on=arguments.host, hosts=hosts, origins=arguments.allowed_origin),
        users=users_of(arguments, settings),
        permissions=None if arguments.permissions is None else Permissions.read(arguments.permissions),
        peer_tls=_peer_tls(arguments),
    )
    server = Server(service, host=arguments.host, port=arguments.port, tls=tls_of(arguments))
    server.bind()
    registry.address = arguments.advertised_url or server.url
    try:
        async with registry:
            await registry.wait_until_read()
            await server.start()
            yield server
    finally:
        await server.stop()


def users_of(arguments: Namespace, settings: Settings) -> Users | None:
    from barnabas.rest.users import ClusterUsers, FileUsers

    if arguments.users is not None and arguments.cluster_users:
        raise Failure("pass --users or --cluster-users, not both")
    if arguments.users is not None:
        return FileUsers.read(arguments.users)
    return ClusterUsers(settings) if arguments.cluster_users else None


def tls_of(arguments: Namespace) -> ssl.SSLContext | None:
    if arguments.tls_keystore is None:
        return None
    from barnabas.transport.tls import TlsFiles, server_context

    return server_context(TlsFiles(key_store=arguments.tls_keystore))


def _peer_tls(arguments: Namespace) -> ssl.SSLContext | None:
    if arguments.tls_truststore is None:
        return None
    from barnabas.transport.tls import TlsFiles, client_context

    return client_context(TlsFiles(trust_store=arguments.tls_truststore))
