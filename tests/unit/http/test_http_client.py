"""Requests over HTTP: what is sent, which responses are read, what is refused, and what is never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from barnabas.http.client import HEADERS_MAX, RequestFailed, Response, basic, bearer, get, parse_url, request
from barnabas.model.settings import InvalidSetting

T = TypeVar("T")


def served(answer: bytes | None, work: Callable[[str], Awaitable[T]]) -> tuple[T, bytes]:
    """The result of work with the address of a server, and what the server was sent; None: it never answers."""
    asked = bytearray()
    ended: list[asyncio.Future[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        done = asyncio.get_running_loop().create_future()
        ended.append(done)
        try:
            asked.extend(await reader.readuntil(b"\r\n\r\n"))
            if answer is not None:
                writer.write(answer)
                writer.write_eof()
            asked.extend(await reader.read())
        except OSError:
            pass
        finally:
            writer.transport.abort()
            done.set_result(None)

    async def run() -> T:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            try:
                return await work(f"127.0.0.1:{port}")
            finally:
                await asyncio.gather(*ended)
                await asyncio.sleep(0)

    return asyncio.run(run()), bytes(asked)


def fetch(answer: bytes | None, *, size_bytes_max: int = 100, seconds: float = 5) -> tuple[bytes, bytes]:
    return served(
        answer,
        lambda place: get(f"http://{place}/keys?a=1", size_bytes_max=size_bytes_max, timeout_seconds=seconds),
    )


def ask(
    answer: bytes,
    method: str = "GET",
    *,
    login: str = "",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[Response, list[str]]:
    """The response, and the lines of the request."""
    response, asked = served(
        answer,
        lambda place: request(
            method, f"http://{login}{place}/a", headers=headers, body=body, size_bytes_max=100, timeout_seconds=5
        ),
    )
    return response, asked.decode().split("\r\n")


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 5\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ],
)
def test_a_document_is_read_however_it_is_sent(answer: bytes) -> None:
    body, asked = fetch(answer)
    assert body == b"hello"
    assert asked.startswith(b"GET /keys?a=1 HTTP/1.1\r\nhost: 127.0.0.1:")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n\r\n",
        HEAD + b"Content-Length: 101\r\n\r\n" + b"x" * 101,
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Content-Length: 50\r\n\r\nshort",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"\r\n" + b"x" * 200,
        HEAD + b"x" * 100_000,
        HEAD + b"a: b\r\n" * (HEADERS_MAX + 1) + b"\r\n",
        b"HTTP/1.1 many OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"",
    ],
)
def test_anything_else_is_a_failure(answer: bytes) -> None:
    with pytest.raises(RequestFailed):
        fetch(answer)


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with pytest.raises(RequestFailed, match="did not answer"):
        fetch(None, seconds=0.05)


def test_an_address_is_taken_apart() -> None:
    assert parse_url("https://issuer.test/keys?x=1") == ("issuer.test", 443, "/keys?x=1", True)
    assert parse_url("http://[::1]:8080") == ("::1", 8080, "/", False)


@pytest.mark.parametrize("url", ["", "keys", "file:///x", "https://", "http://a b/", "http://x:port/", "http://u@x/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_url(url)


def test_a_response_of_any_status_is_returned() -> None:
    response, _ = ask(b"HTTP/1.1 409 Conflict\r\nX-Reason: because\r\nContent-Length: 2\r\n\r\n{}")
    assert response == (409, {"x-reason": "because", "content-length": "2"}, b"{}")


@pytest.mark.parametrize(
    ("method", "answer", "status"),
    [
        ("HEAD", HEAD + b"Content-Length: 50\r\n\r\n", 200),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n", 304),
    ],
)
def test_a_response_without_a_body_is_not_waited_for(method: str, answer: bytes, status: int) -> None:
    response, lines = ask(answer, method)
    assert (response.status, response.body) == (status, b"")
    assert lines[0] == f"{method} /a HTTP/1.1"


def test_an_interim_response_is_skipped() -> None:
    response, _ = ask(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nhi")
    assert (response.status, response.body) == (200, b"hi")


def test_a_body_is_sent_with_its_length() -> None:
    _, lines = ask(HEAD + b"Content-Length: 0\r\n\r\n", "PUT", headers={"content-type": "text/x"}, body=b"hello")
    assert {"content-type: text/x", "content-length: 5"} <= set(lines)
    assert lines[-1] == "hello"


def test_credentials_of_a_url_are_sent_unless_the_caller_sends_others() -> None:
    empty = HEAD + b"Content-Length: 0\r\n\r\n"
    assert f"authorization: {basic('me', 'p@ss')}" in ask(empty, login="me:p%40ss@")[1]
    lines = ask(empty, login="me:hush@", headers={"authorization": bearer("abc")})[1]
    assert [line for line in lines if line.startswith("authorization")] == ["authorization: Bearer abc"]


@pytest.mark.parametrize("answer", [b"SSH-2.0\r\n\r\n", HEAD + b"Content-Length: 101\r\n\r\n"])
def test_an_error_does_not_contain_the_credentials_of_the_url(answer: bytes) -> None:
    with pytest.raises(RequestFailed) as caught:
        ask(answer, login="me:hush@")
    assert "hush" not in str(caught.value)
    with pytest.raises(InvalidSetting) as wrong:
        parse_url("ftp://me:hush@host/")
    assert "hush" not in str(wrong.value)


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\n", "\u20ac"])
def test_a_header_that_http_does_not_allow_is_refused(value: str) -> None:
    with pytest.raises(InvalidSetting):
        asyncio.run(request("GET", "http://127.0.0.1:1/", headers={"x": value}, size_bytes_max=1, timeout_seconds=1))
