"""The server for pages answers what it knows, refuses the rest, and lets nobody keep it busy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest

from barnabas.http.server import CONNECTIONS_MAX, HEAD_BYTES_MAX, TURN_SECONDS_MAX, HttpServer, Page


def ask(request: bytes, pages: dict[str, Callable[[], Page]] | None = None) -> tuple[str, str]:
    """The status line and the body of the answer."""

    async def talk() -> bytes:
        server = HttpServer(pages or {"/page": lambda: Page(200, ("one\n", "two\n"))})
        await server.start("127.0.0.1", 0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request)
            answer = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            await writer.wait_closed()
            return answer
        finally:
            await server.stop()

    head, _, body = asyncio.run(talk()).decode().partition("\r\n\r\n")
    return head.split("\r\n")[0], body


def test_a_page_is_answered_whole() -> None:
    assert ask(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n") == ("HTTP/1.1 200 OK", "one\ntwo\n")
    assert ask(b"GET /page?x=1 HTTP/1.0\r\n\r\n") == ("HTTP/1.1 200 OK", "one\ntwo\n")
    assert ask(b"HEAD /page HTTP/1.1\r\n\r\n") == ("HTTP/1.1 200 OK", "")


def test_a_large_page_is_answered_whole() -> None:
    pages = {"/": lambda: Page(200, (f"{number}\n" for number in range(5000)))}
    assert ask(b"GET / HTTP/1.1\r\n\r\n", pages)[1].splitlines()[-1] == "4999"


def test_others_get_their_turn_between_pieces_that_take_long() -> None:
    turns: list[str] = []

    def slow() -> Iterator[str]:
        loop = asyncio.get_running_loop()
        for number in range(3):
            loop.call_soon(turns.append, f"turn {number}")
            end = loop.time() + 2 * TURN_SECONDS_MAX
            while loop.time() < end:
                pass
            turns.append(f"piece {number}")
            yield "x"

    assert ask(b"GET / HTTP/1.1\r\n\r\n", {"/": lambda: Page(200, slow())})[1] == "xxx"
    assert turns == ["piece 0", "turn 0", "piece 1", "turn 1", "piece 2", "turn 2"]


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"GET /../page HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /page HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"GET /page\r\n\r\n", "400 Bad Request"),
        (b"\x00\x00\r\n\r\n", "400 Bad Request"),
        (b"GET /" + b"x" * 2 * HEAD_BYTES_MAX + b" HTTP/1.1\r\n\r\n", "400 Bad Request"),
    ],
)
def test_anything_else_is_refused(request_head: bytes, status: str) -> None:
    assert ask(request_head)[0] == f"HTTP/1.1 {status}"


def breaks_at_once() -> Page:
    raise KeyError("dictionary changed size")


def breaks_on_the_way() -> Page:
    def pieces() -> Iterator[str]:
        yield "one\n"
        raise RuntimeError("dictionary changed size")

    return Page(200, pieces())


@pytest.mark.parametrize("page", [breaks_at_once, breaks_on_the_way])
def test_a_page_that_raises_is_answered_with_500_and_logged(
    page: Callable[[], Page], caplog: pytest.LogCaptureFixture
) -> None:
    """``ask`` returns at the end of the stream, so this shows too that the connection is closed."""
    with caplog.at_level(logging.ERROR, logger="barnabas"):
        status, body = ask(b"GET /page?x=1 HTTP/1.1\r\n\r\n", {"/page": page})
    assert status == "HTTP/1.1 500 Internal Server Error"
    assert "changed size" not in body
    (record,) = caplog.records
    assert "page failed" in record.getMessage()
    assert "/page" in record.getMessage()
    assert record.exc_info is not None


def test_after_a_page_that_raises_the_server_answers_others() -> None:
    async def work() -> None:
        server = HttpServer({"/bad": breaks_at_once, "/good": lambda: Page(200, ("fine\n",))})
        await server.start("127.0.0.1", 0)
        for path, status in ((b"/bad", b"500"), (b"/good", b"200")):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET " + path + b" HTTP/1.1\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 10)).split()[1] == status
            writer.close()
            await writer.wait_closed()
        await server.stop()

    asyncio.run(work())


def test_a_probe_is_answered_while_slow_clients_hold_all_places() -> None:
    async def talk() -> bytes:
        server = HttpServer({"/live": lambda: Page(200, ("yes\n",))})
        await server.start("127.0.0.1", 0)
        slow = []
        try:
            for _ in range(CONNECTIONS_MAX + 3):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"GET /live HTTP/1.1\r\n")  # and no more of it
                slow.append(writer)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            slow.append(writer)
            writer.write(b"GET /live HTTP/1.1\r\n\r\n")
            return await asyncio.wait_for(reader.read(), 10)
        finally:
            for writer in slow:
                writer.transport.abort()
            await server.stop()

    assert asyncio.run(talk()).startswith(b"HTTP/1.1 200")
