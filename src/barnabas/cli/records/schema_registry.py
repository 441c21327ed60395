"""Where the schema registry is that ``consume --decode`` and ``produce --schema-id`` ask, by option or setting.

The names are those of Confluent's clients, so a file that was written for them works here. The registry's client is
``barnabas.client.serdes.registry``; what its schemas mean is in ``schemas.py``.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import REGISTRY_LOGIN, REGISTRY_URL, client_settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.serdes.registry import Registry

REGISTRY_VARIABLE: Final = "BARNABAS_SCHEMA_REGISTRY"
WAYS: Final = f"--schema-registry URL, ${REGISTRY_VARIABLE}, or {REGISTRY_URL} in a profile"


def add_registry(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--schema-registry",
        metavar="URL",
        default=os.environ.get(REGISTRY_VARIABLE),
        help=f"where schemas are kept; ${REGISTRY_VARIABLE}, else {REGISTRY_URL} as -X or the profile says; "
        f"{REGISTRY_LOGIN}=USER:PASSWORD signs in",
    )


def registry_of(arguments: Namespace) -> Registry | None:
    """None if nobody said where it is."""
    given = client_settings(arguments)
    url = arguments.schema_registry or given.get(REGISTRY_URL)
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
