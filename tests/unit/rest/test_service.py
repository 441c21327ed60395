"""A service answers every request, good or bad, in its own shape, and keeps its limits."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from barnabas.rest import server as server_module
from barnabas.rest.access import Access
from barnabas.rest.bodies import JsonResponse, int_parameter, is_true, read_json
from barnabas.rest.server import PortBusy, Server
from barnabas.rest.service import Limits, Service
from barnabas.rest.users import FileUsers

MEDIA = "application/vnd.test+json"


class Thing(msgspec.Struct):
    name: str


async def echo(request: Request) -> Response:
    thing = await read_json(request, Thing)
    return JsonResponse({"name": thing.name, "user": request.state.user})


async def show(request: Request) -> Response:
    return JsonResponse([request.path_params["name"], is_true(request, "deleted"), int_parameter(request, "limit", -1)])


async def fail(request: Request) -> Response:
    raise ZeroDivisionError


async def sleep(request: Request) -> Response:
    await asyncio.sleep(60)
    raise AssertionError


async def stream(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            await asyncio.sleep(0.1)
            yield b"x"

    return StreamingResponse(pieces())


ROUTES = [
    Route("/things", echo, methods=["POST"]),
    Route("/things/{name:segment}", show),
    Route("/fail", fail),
    Route("/sleep", sleep),
    Route("/stream", stream),
]


@asynccontextmanager
async def served(tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    service = Service("test", ROUTES, access=Access(listens_on="127.0.0.1"), media_type=MEDIA, **options)
    server = Server(service, host="127.0.0.1", port=0, tls=tls)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
            yield client
    finally:
        await server.stop()


def run(work: Any) -> None:
    asyncio.run(work)


def is_error(response: httpx.Response, status: int) -> bool:
    body = response.json()
    return (
        response.status_code == status
        and response.headers["content-type"] == MEDIA
        and body["error_code"] == status
        and bool(body["message"])
    )


def test_bodies_paths_and_queries_are_read() -> None:
    async def work() -> None:
        async with served() as client:
            response = await client.post("/things", content=b'{"name":"a","unknown":1}')
            assert response.json() == {"name": "a", "user": None}
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "server" not in response.headers
            assert (await client.get("/things/a%2Fb%20c/?deleted=true&limit=3")).json() == ["a/b c", True, 3]

    run(work())


def test_errors_have_the_services_shape() -> None:
    async def work() -> None:
        async with served(limits=Limits(body_bytes=100, response_seconds=0.2)) as client:
            assert is_error(await client.get("/nowhere"), 404)
            assert is_error(await client.delete("/things"), 405)
            assert is_error(await client.post("/things", content=b"{"), 400)
            assert is_error(await client.post("/things", content=b'{"name":1}'), 422)
            assert is_error(await client.post("/things", content=b"[" * 100), 422)
            assert is_error(await client.post("/things", content=b"x" * 101), 413)
            assert is_error(await client.get("/things/a?limit=x"), 400)
            assert is_error(await client.get("/fail"), 500)
            assert is_error(await client.get("/sleep"), 503)
            assert (await client.get("/stream")).content == b"xxx", "a stream may take longer than the response's limit"

    run(work())


def test_a_body_without_a_length_is_limited_too() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x"

    async def work() -> None:
        async with served(limits=Limits(body_bytes=100)) as client:
            assert is_error(await client.post("/things", content=pieces()), 413)

    run(work())


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def work() -> None:
        async with served(limits=Limits(body_seconds=0.1)) as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            writer.write(b"POST /things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
            assert b" 408 " in await reader.readline()
            writer.close()

    run(work())


def test_a_connection_that_asks_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HEAD_SECONDS_MAX", 0.1)

    async def work() -> None:
        async with served() as client:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: loc")
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    run(work())


def test_a_foreign_host_or_origin_is_refused() -> None:
    async def work() -> None:
        async with served() as client:
            assert is_error(await client.get("/things/a", headers={"Host": "evil.example"}), 403)
            assert is_error(await client.get("/things/a", headers={"Origin": "http://evil.example"}), 403)
            own = str(client.base_url).rstrip("/")
            assert (await client.get("/things/a", headers={"Origin": own})).status_code == 200

    run(work())


def test_users_are_authenticated() -> None:
    async def work() -> None:
        async with served(users=FileUsers({"ann": "se:cret"})) as client:
            refused = await client.post("/things", content=b'{"name":"a"}')
            assert is_error(refused, 401)
            assert refused.headers["www-authenticate"] == 'Basic realm="test"'
            for login in [("ann", "wrong"), ("bob", "se:cret"), ("", "")]:
                assert is_error(await client.get("/things/a", auth=login), 401)
            assert is_error(await client.get("/things/a", headers={"Authorization": "Basic ???"}), 401)
            answer = await client.post("/things", content=b'{"name":"a"}', auth=("ann", "se:cret"))
            assert answer.json()["user"] == "ann"

    run(work())


def test_a_busy_port_is_named() -> None:
    async def work() -> None:
        async with served() as client:
            second = Server(lambda *_: None, host="127.0.0.1", port=client.base_url.port or 0)  # type: ignore[arg-type]
            with pytest.raises(PortBusy, match=str(client.base_url.port)):
                await second.start()

    run(work())


def test_a_request_under_way_is_answered_when_the_server_stops() -> None:
    async def work() -> None:
        service = Service("test", ROUTES, access=Access(listens_on="127.0.0.1"))
        server = Server(service, host="127.0.0.1", port=0)
        await server.start()
        async with httpx.AsyncClient(base_url=server.url) as client:
            streaming = asyncio.ensure_future(client.get("/stream"))
            await asyncio.sleep(0.05)
            await server.stop()
            assert (await streaming).content == b"xxx"
            with pytest.raises(httpx.ConnectError):
                await client.get("/stream")

    run(work())
