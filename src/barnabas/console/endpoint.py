"""Endpoints as data: method, path, handler and what the documentation of the API says of each.

``Call`` is what a handler receives. ``handled`` is the way of every request: session, CSRF token, read-only mode,
audit line, and errors of the cluster as HTTP errors.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.errors import ClusterUnreachable, RegistryRefused, RegistryUnreachable, TimedOut
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.settings import InvalidSetting
from barnabas.observe.log import logger
from barnabas.ops.failure import Failure
from barnabas.rest.bodies import JsonResponse, read_json
from barnabas.rest.errors import RestError

if TYPE_CHECKING:
    from barnabas.console.clusters import Clusters
    from barnabas.console.events import Streams
    from barnabas.console.login_attempts import LoginAttempts
    from barnabas.console.sessions import Login, Sessions
    from barnabas.console.view import ClusterView

T = TypeVar("T")

_audit: Final = logger("console.audit")

CSRF_HEADER: Final = "x-csrf-token"
CHANGES: Final = ("POST", "PUT", "PATCH", "DELETE")
_STATUS: Final = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    errors.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    errors.TOPIC_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    errors.GROUP_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    errors.CLUSTER_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    errors.SASL_AUTHENTICATION_FAILED: HTTPStatus.UNAUTHORIZED,
    errors.TOPIC_ALREADY_EXISTS: HTTPStatus.CONFLICT,
    errors.NON_EMPTY_GROUP: HTTPStatus.CONFLICT,
}


class Console(Protocol):
    """What endpoints use of the application."""

    clusters: Clusters
    sessions: Sessions
    login_attempts: LoginAttempts
    streams: Streams
    requires_login: bool
    is_read_only: bool
    cookie: str

    def cookie_header(self, session_id: str) -> str: ...


class Parameter(msgspec.Struct, frozen=True):
    name: str
    doc: str
    kind: str = "string"


Handler: TypeAlias = Callable[["Call"], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str  # below /api; {name} is one segment
    handler: Handler
    summary: str
    body: Any = None  # the msgspec type of the body
    parameters: tuple[Parameter, ...] = ()
    is_change: bool | None = None  # by default what is not GET is a change
    needs_login: bool = True

    @property
    def changes(self) -> bool:
        return self.method in CHANGES if self.is_change is None else self.is_change


class Call:
    """One request of the API."""

    def __init__(self, request: Request, endpoint: Endpoint) -> None:
        self.request = request
        self.endpoint = endpoint
        self.console: Console = request.app
        self.session_id: str = request.cookies.get(self.console.cookie, "")[:100]
        self.login: Login | None = self.console.sessions.find(self.session_id, now=time.monotonic())
        self.audited: dict[str, object] = {}

    @property
    def user(self) -> str:
        return "" if self.login is None else self.login.user

    def path(self, name: str) -> str:
        value: str = self.request.path_params[name]
        return value

    @property
    def view(self) -> ClusterView:
        """Of the cluster in the path."""
        name = self.path("cluster")
        try:
            return self.console.clusters.view(name, self.login)
        except KeyError:
            raise RestError(404, f"there is no cluster {name!r} in this console") from None

    async def body(self, kind: type[T]) -> T:
        return await read_json(self.request, kind)

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, *, low: int = 0, high: int) -> int:
        """A whole number of the query, which must be within its limits."""
        text = self.query(name)
        if not text:
            return default
        try:
            number = int(text)
        except ValueError:
            raise RestError(400, f"{name}={text!r} is not a whole number") from None
        if not low <= number <= high:
            raise RestError(400, f"{name}={number} is not between {low} and {high}")
        return number


def handled(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        call = Call(request, endpoint)
        if endpoint.needs_login and call.console.requires_login and call.login is None:
            raise RestError(401, "log in first")
        if endpoint.method in CHANGES:
            _check_change(call)
        outcome = "failed"
        try:
            answer = await endpoint.handler(call)
            outcome = "done"
        except RestError as error:
            outcome = error.message
            raise
        except BarnabasError as error:
            raise _as_rest(error) from error
        except Failure as error:
            raise RestError(400, str(error)) from error
        finally:
            if endpoint.changes:
                _audit.info(
                    "console_change",
                    user=call.user or "anonymous",
                    client=request.client.host if request.client else "",
                    method=endpoint.method,
                    path=request.scope["path"],
                    outcome=outcome,
                    **call.audited,
                )
        return answer if isinstance(answer, Response) else JsonResponse(answer)

    return handle


def _check_change(call: Call) -> None:
    if not call.console.sessions.is_token(call.session_id, call.request.headers.get(CSRF_HEADER, "")):
        raise RestError(
            403, "the request has no valid CSRF token: get one from /api/session and send it as X-Csrf-Token"
        )
    if call.endpoint.changes and call.endpoint.needs_login and call.console.is_read_only:
        raise RestError(403, "this console is read-only")


def _as_rest(error: BarnabasError) -> RestError:
    if isinstance(error, ApiError):
        status = _STATUS.get(error.error)
        if status is None:
            status = HTTPStatus.SERVICE_UNAVAILABLE if error.error.retriable else HTTPStatus.BAD_REQUEST
        return RestError(status, f"{error.message.rstrip('.')} ({error.error.name})", code=error.error.code)
    if isinstance(error, ClusterUnreachable | TimedOut | RegistryUnreachable):
        return RestError(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    if isinstance(error, RegistryRefused):
        return RestError(error.status if error.status >= 400 else HTTPStatus.BAD_GATEWAY, str(error))
    if isinstance(error, InvalidSetting):
        return RestError(HTTPStatus.BAD_REQUEST, str(error))
    return RestError(HTTPStatus.BAD_GATEWAY, str(error))
