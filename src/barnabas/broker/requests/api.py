"""An API as its handler module declares it, and the route that the dispatcher follows.

Every handler module ends with ``API: Final = Api(...)``, or with ``APIS`` if it serves several. The declaration names
everything that the broker must know about an API: the handler, the listeners, the permissions, the audit line, the
answer to a request that fails as a whole, and whether brokers forward it to the active controller. ``routes`` collects
the declarations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Flag, auto
from typing import Any, Final, TypeAlias

from barnabas.broker.requests.portions import Portions
from barnabas.model.errors import ApiError
from barnabas.wire.api import ApiKey
from barnabas.wire.decoder import STRUCTS_MAX
from barnabas.wire.message import Message
from barnabas.wire.messages import request_of, response_of

Handle: TypeAlias = "Callable[..., Any]"  # (Request, message) -> Message | Deferred | coroutine | None
Check: TypeAlias = "Callable[..., Message | None]"  # (GuardedRequest, message)
Audit: TypeAlias = "Callable[[Any], Iterable[str]]"
Refuse: TypeAlias = "Callable[[Any, ApiError], Message]"


class At(Flag):
    """The listeners on which a handler runs."""

    CLIENT = auto()  # listeners for clients and brokers
    CONTROLLER = auto()  # listeners named in controller.listener.names


FEW_ROWS_MAX: Final = 1000  # of requests that name a handful of things
GROUP_ROWS_MAX: Final = 10_000  # of requests that name all members or topics of a group

CLIENT: Final = At.CLIENT
CONTROLLER: Final = At.CONTROLLER


@dataclass(frozen=True, slots=True)
class Api:
    """The declaration of one API. ``needs`` has no default: an API without permissions cannot be imported."""

    key: ApiKey
    handle: Handle
    _: KW_ONLY
    at: At
    needs: Check  # check of the permissions before the handler runs, see ``permissions``
    audit: Audit | None = None  # names of the changed resources for the audit log; None for an API that only reads
    refuse: Refuse | None = None  # response to a request that fails as a whole, if it has no top-level error code
    portions: tuple[Portions, ...] = ()  # where its rows are, if a request of many rows may be served in portions
    rows_max: int = STRUCTS_MAX  # elements in the arrays of a request; more close the connection
    is_forwarded: bool = False  # clients' listeners serve it too, by forwarding it to the active controller
    local_part: Callable[[Handle], Handle] | None = None  # wraps a forwarded handler: work of the receiving broker
    announced_from: int | None = None  # lowest version in ApiVersions, if it is not the lowest served version
    behaviour: str | None = None  # text for docs/COMPATIBILITY.md, if the module's docstring covers several APIs

    def __post_init__(self) -> None:
        if not callable(self.needs):
            raise TypeError(f"API {self.key.name} declares no permissions: pass needs=..., see broker/permissions.py")
        if not self.at:
            raise TypeError(f"API {self.key.name} is served on no listener: pass at=CLIENT or at=CONTROLLER")
        if self.is_forwarded and self.at is not CONTROLLER:
            raise TypeError(f"API {self.key.name} is forwarded, so its handler runs at=CONTROLLER only")
        if self.local_part is not None and not self.is_forwarded:
            raise TypeError(f"API {self.key.name} has a local part, but it is not forwarded")


@dataclass(frozen=True, slots=True)
class Route:
    """One row of a routing table: an API on one kind of listener."""

    api: Api
    key: ApiKey
    handle: Handle
    request: type[Message]
    response: type[Message]
    versions: range
    is_coroutine: bool

    @classmethod
    def of(cls, api: Api, handle: Handle) -> Route:
        request = request_of(api.key)
        return cls(
            api=api,
            key=api.key,
            handle=handle,
            request=request,
            response=response_of(api.key),
            versions=request.versions,
            is_coroutine=inspect.iscoroutinefunction(handle),
        )

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def announced(self) -> tuple[ApiKey, int, int]:
        """API key, lowest and highest version, as ApiVersions announces them."""
        lowest = self.versions[0] if self.api.announced_from is None else self.api.announced_from
        return self.key, lowest, self.versions[-1]
