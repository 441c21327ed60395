"""One module per API with its request and its response. The module is named like the API and imported on first use.

Code that knows the API imports the class from its module; ``request_of`` and ``response_of`` are for code that only
has the number of an API, such as a listener. APIs without a module (share groups, streams groups, delegation tokens,
telemetry) are not declared.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message


def declared() -> tuple[ApiKey, ...]:
    """The APIs whose messages are declared here."""
    modules = {found.name for found in iter_modules(__path__)}
    return tuple(api_key for api_key in ApiKey if api_key.name.lower() in modules)


@cache
def request_of(api_key: ApiKey) -> type[Message]:
    """The request of an API; LookupError if it is not declared."""
    return _class_of(api_key, "Request")


@cache
def response_of(api_key: ApiKey) -> type[Message]:
    """The response of an API; LookupError if it is not declared."""
    return _class_of(api_key, "Response")


def _class_of(api_key: ApiKey, direction: str) -> type[Message]:
    path = f"{__name__}.{api_key.name.lower()}"
    try:
        module = import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        raise LookupError(f"{api_key.name} is not declared: there is no module {path}") from None
    cls: type[Message] = getattr(module, api_key.name.title().replace("_", "") + direction)
    return cls
