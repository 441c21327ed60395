"""The routing tables of a node, collected from the handler modules. ApiVersions announces what they contain.

Listeners for clients serve ``ROUTES``, listeners for controllers ``CONTROLLER_ROUTES``. Nothing is listed here: a
module in ``broker/handlers`` that declares an API is found by its name in the package. ``docs/COMPATIBILITY.md`` is
generated from these tables.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

from barnabas.broker import handlers
from barnabas.broker.controller.forwarding import forwarded
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api, At, Route
from barnabas.wire.api import ApiKey


def declared(package: ModuleType) -> Iterator[Api]:
    """The APIs that the modules of a package declare; ImportError for a handler without a declaration."""
    for found in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{found.name}")
        names = vars(module)
        if "APIS" in names:
            yield from names["APIS"]
        elif "API" in names:
            yield names["API"]
        elif "handle" in names:
            raise ImportError(f"{module.__name__} defines a handler but declares no API: end it with API = Api(...)")


def collected(apis: tuple[Api, ...], at: At) -> dict[int, Route]:
    """The routes of one kind of listener in the order of their keys; ImportError if two modules declare one API."""
    routes: dict[int, Route] = {}
    for api in sorted(apis, key=lambda api: api.key):
        if at in api.at:
            handle = api.handle
        elif api.is_forwarded:
            handle = forwarded(api.handle)
            if api.local_part is not None:
                handle = api.local_part(handle)
        else:
            continue
        if api.key in routes:
            raise ImportError(f"API {api.key.name} is declared twice for listeners of kind {at.name}")
        routes[api.key] = Route.of(api, handle)
    return routes


def announced(routes: Mapping[int, Route]) -> tuple[tuple[ApiKey, int, int], ...]:
    """The versions of a table as ApiVersions announces them."""
    return tuple(route.announced for route in routes.values())


APIS: Final = tuple(declared(handlers))
ROUTES: Final = collected(APIS, CLIENT)
CONTROLLER_ROUTES: Final = collected(APIS, CONTROLLER)
