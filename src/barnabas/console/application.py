"""The console as one HTTP service: its endpoints, its pages, and the headers that every response carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from barnabas.console import openapi
from barnabas.console.api import (
    access,
    brokers,
    export,
    groups,
    messages,
    overview,
    produce,
    session,
    topic_changes,
    topics,
)
from barnabas.console.clusters import Clusters
from barnabas.console.endpoint import Endpoint, handled
from barnabas.console.events import Streams
from barnabas.console.login_attempts import LoginAttempts
from barnabas.console.search import SEARCHES_MAX
from barnabas.console.sessions import Sessions
from barnabas.console.static_files import StaticFiles
from barnabas.rest.access import Access
from barnabas.rest.bodies import JsonResponse
from barnabas.rest.errors import RestError
from barnabas.rest.service import Limits, Service

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
ENDPOINTS: Final[Sequence[Endpoint]] = (
    *session.ENDPOINTS,
    *overview.ENDPOINTS,
    *topics.ENDPOINTS,
    *topic_changes.ENDPOINTS,
    *messages.ENDPOINTS,
    *produce.ENDPOINTS,
    *export.ENDPOINTS,
    *groups.ENDPOINTS,
    *brokers.ENDPOINTS,
    *access.ENDPOINTS,
)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Console(Service):
    """The ASGI application; ``close`` ends its connections to clusters."""

    def __init__(
        self,
        clusters: Clusters,
        *,
        access: Access,
        requires_login: bool = False,
        is_read_only: bool = False,
        is_tls: bool = False,
    ) -> None:
        pages = StaticFiles()
        super().__init__(
            "console",
            [
                *(_route(each) for each in ENDPOINTS),
                Route("/api/openapi.json", _openapi),
                Route("/api/{path:path}", _no_endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
                Route("/", pages.serve),
                Route("/{path:path}", pages.serve),
            ],
            access=access,
            limits=Limits(body_bytes=BODY_BYTES_MAX),
        )
        self.clusters = clusters
        self.sessions = Sessions()
        self.login_attempts = LoginAttempts()
        self.streams = Streams(SEARCHES_MAX)
        self.requires_login = requires_login
        self.is_read_only = is_read_only
        self.is_tls = is_tls
        self.cookie = "barnabas-console"  # the server adds its port: cookies are shared by all ports of a host

    async def close(self) -> None:
        await self.streams.close()
        await self.clusters.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
            await send(message)

        await super().__call__(scope, receive, send_with_headers)

    def cookie_header(self, session_id: str) -> str:
        secure = "; Secure" if self.is_tls else ""
        return f"{self.cookie}={session_id}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _route(endpoint: Endpoint) -> Route:
    path = endpoint.path.replace("}", ":segment}")
    return Route(f"/api{path}", handled(endpoint), methods=[endpoint.method])


async def _openapi(_: Request) -> Response:
    document: Any = openapi.document(ENDPOINTS)
    return JsonResponse(document)


async def _no_endpoint(request: Request) -> Response:
    raise RestError(404, f"there is no {request.scope['path']}; /api/openapi.json lists what there is")
