"""One GET: what is answered, what is refused, and what is never waited for."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.http.client import FetchFailed, get, parse_url
from barnabas.model.settings import InvalidSetting


def fetch(answer: bytes | None, *, size_bytes_max: int = 100, seconds: float = 5) -> tuple[bytes, bytes]:
    """The document, and what the server was asked; None: it never answers."""
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
            await reader.read()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            done.set_result(None)

    async def run() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            try:
                return await get(
                    f"http://127.0.0.1:{port}/keys?a=1", size_bytes_max=size_bytes_max, timeout_seconds=seconds
                )
            finally:
                await asyncio.gather(*ended)
                await asyncio.sleep(0)

    return asyncio.run(run()), bytes(asked)


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
    assert asked.startswith(b"GET /keys?a=1 HTTP/1.1\r\nHost: 127.0.0.1:")


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
        HEAD + b"x" * 20_000,
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"",
    ],
)
def test_anything_else_is_a_failure(answer: bytes) -> None:
    with pytest.raises(FetchFailed):
        fetch(answer)


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with pytest.raises(FetchFailed, match="did not answer"):
        fetch(None, seconds=0.05)


def test_an_address_is_taken_apart() -> None:
    assert parse_url("https://issuer.test/keys?x=1") == ("issuer.test", 443, "/keys?x=1", True)
    assert parse_url("http://[::1]:8080") == ("::1", 8080, "/", False)


@pytest.mark.parametrize("url", ["", "keys", "file:///x", "https://", "http://a b/", "http://x:port/", "http://u@x/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_url(url)
