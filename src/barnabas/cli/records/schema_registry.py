"""Where the schema registry is that ``consume --decode`` and ``produce --schema-id`` ask, by option or setting.

The names are those of Confluent's clients, so a file that was written for them works here. The registry's client is
``barnabas.client.serdes.registry``; what its schemas mean is in ``schemas.py``.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import DEFAULT_SERVERS, REGISTRY_LOGIN, REGISTRY_URL, client_settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.serdes.registry import Registry

DEFAULT_URL: Final = "http://127.0.0.1:8081"
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
REGISTRY_VARIABLE: Final = "BARNABAS_SCHEMA_REGISTRY"
WAYS: Final = f"--schema-registry URL, ${REGISTRY_VARIABLE}, or {REGISTRY_URL} in a profile"


def add_registry(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--schema-registry",
        metavar="URL",
        default=os.environ.get(REGISTRY_VARIABLE),
        help=f"URL of the schema registry; ${REGISTRY_VARIABLE}, else {REGISTRY_URL} of -X or the profile, else "
        f"{DEFAULT_URL} for a local broker; {REGISTRY_LOGIN}=USER:PASSWORD authenticates",
    )


def default_url(arguments: Namespace) -> str | None:
    """Of the registry that `barnabas up` runs beside a broker at the default port of this machine."""
    servers = arguments.servers or client_settings(arguments).get("bootstrap.servers", DEFAULT_SERVERS)
    host, _, port = servers.partition(",")[0].rpartition(":")
    return DEFAULT_URL if host in LOOPBACK and port == DEFAULT_SERVERS.rpartition(":")[2] else None


def is_guess(arguments: Namespace) -> bool:
    """Whether no option or setting names the registry."""
    return not (arguments.schema_registry or client_settings(arguments).get(REGISTRY_URL))


def registry_of(arguments: Namespace) -> Registry | None:
    """The registry that an option or setting names, else that of a local broker; None if there is neither."""
    given = client_settings(arguments)
    url = arguments.schema_registry or given.get(REGISTRY_URL) or default_url(arguments)
    if not url:
        return None
    from barnabas.client.serdes.registry import Registry

    username, _, password = given.get(REGISTRY_LOGIN, "").partition(":")
    try:
        return Registry(url, username=username, password=password)
    except ValueError as error:
        raise Failure(f"{url!r}: {error}") from error


def needed_registry(arguments: Namespace, *, why: str) -> Registry:
    registry = registry_of(arguments)
    if registry is None:
        raise Failure(f"{why} asks a schema registry: name it with {WAYS}")
    return registry
