"""An HTTP service as an ASGI application: routes behind one gate.

The gate checks Host and Origin, authenticates, limits the size of a body and the time that body and response may
take, and turns every error into the service's shape. Routing is starlette's.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Router
from starlette.types import Message, Receive, Scope, Send

from barnabas.observe.log import logger
from barnabas.rest.access import Access
from barnabas.rest.bodies import JSON, JsonResponse
from barnabas.rest.errors import ErrorBody, RestError, code_and_message

_log: Final = logger("rest")

UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
METHOD_NOT_ALLOWED: Final = 405
REQUEST_TIMEOUT: Final = 408
TOO_LARGE: Final = 413
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503

DISCARD_BYTES: Final = 1024 * 1024
DISCARD_SECONDS: Final = 1.0


class Users(Protocol):
    """Verifies credentials of HTTP basic authentication; see ``users``."""

    async def verify(self, username: str, password: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    body_bytes: int = 16 * 1024 * 1024
    body_seconds: float = 30.0  # until the whole body has arrived
    response_seconds: float = 60.0  # from the request's head to the response's head


class Service:
    """``request.state.user`` is the authenticated user, or None for a service without users."""

    def __init__(
        self,
        name: str,
        routes: Sequence[BaseRoute],
        *,
        access: Access,
        media_type: str = JSON,
        error_body: ErrorBody = code_and_message,
        users: Users | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self._router = Router(routes, redirect_slashes=False, default=_not_found)
        self._access = access
        self._media_type = media_type
        self._error_body = error_body
        self._users = users
        self._limits = limits or Limits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["app"] = self  # makes starlette raise its errors instead of answering in plain text
        # Routes see the encoded path, so that a name may contain a slash; a trailing slash means nothing.
        scope["path"] = scope["raw_path"].decode("latin-1").rstrip("/") or "/"
        has_begun = False

        async def send_once(message: Message) -> None:
            nonlocal has_begun
            if not has_begun:
                has_begun = True
                deadline.reschedule(None)  # a response that streams takes as long as it takes
            await send(message)

        try:
            async with asyncio.timeout(self._limits.response_seconds) as deadline:
                scope.setdefault("state", {})["user"] = await self._admit(scope)
                await self._router(scope, self._limited(scope, receive), send_once)
        except (RestError, HTTPException, TimeoutError) as error:
            if has_begun:
                raise
            await self._refuse(_as_rest_error(error, scope), scope, receive, send)
        except Exception:
            _log.exception("request_failed", service=self.name, method=scope["method"], path=scope["path"])
            if has_begun:
                raise
            await self._refuse(RestError(INTERNAL_ERROR, "internal server error"), scope, receive, send)

    async def _admit(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.allows_host(hosts[0]):
            raise RestError(
                FORBIDDEN, f"the Host {', '.join(hosts)!r} is not accepted; add it to the service's allowed hosts"
            )
        origin = headers.get("origin")
        if origin is not None and not self._access.allows_origin(origin, scheme=scope["scheme"], host=hosts[0]):
            raise RestError(FORBIDDEN, f"requests from pages of {origin!r} are not accepted")
        if self._users is None:
            return None
        username, password = _basic_credentials(headers.get("authorization", ""))
        if not username or not await self._users.verify(username, password):
            raise RestError(
                UNAUTHORIZED, "authentication failed", headers={"WWW-Authenticate": f'Basic realm="{self.name}"'}
            )
        return username

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        length = Headers(scope=scope).get("content-length", "")
        limit = self._limits.body_bytes
        received = 0
        body_end = asyncio.get_running_loop().time() + self._limits.body_seconds
        is_whole = False

        async def receive_within() -> Message:
            nonlocal received, is_whole
            if length.isdecimal() and int(length) > limit:
                raise RestError(TOO_LARGE, f"the body of the request has more than {limit} bytes")
            if is_whole:
                return await receive()  # waits for the client to go away
            try:
                async with asyncio.timeout_at(body_end):
                    message = await receive()
            except TimeoutError:
                raise RestError(REQUEST_TIMEOUT, "the body of the request did not arrive in time") from None
            received += len(message.get("body", b""))
            if received > limit:
                raise RestError(TOO_LARGE, f"the body of the request has more than {limit} bytes")
            is_whole = not message.get("more_body", False)
            return message

        return receive_within

    async def _refuse(self, error: RestError, scope: Scope, receive: Receive, send: Send) -> None:
        response = JsonResponse(
            self._error_body(error), status_code=error.status, headers=error.headers, media_type=self._media_type
        )
        if error.status in (REQUEST_TIMEOUT, TOO_LARGE):
            response.headers["Connection"] = "close"
        if error.status == TOO_LARGE:
            await _discard(receive)
        await response(scope, receive, send)


async def _discard(receive: Receive) -> None:
    """Read a little more of a body that is too large: a connection closed at once may lose the response."""
    received = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while received < DISCARD_BYTES:
                message = await receive()
                received += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise RestError(NOT_FOUND, f"there is no {scope['path']}")


def _as_rest_error(error: Exception, scope: Scope) -> RestError:
    if isinstance(error, RestError):
        return error
    if isinstance(error, HTTPException):
        message = error.detail
        if error.status_code == METHOD_NOT_ALLOWED:
            message = f"{scope['method']} is not allowed for {scope['path']}"
        return RestError(error.status_code, message, headers=error.headers)
    return RestError(UNAVAILABLE, "the request took too long")


def _basic_credentials(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        username, _, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return username, password
