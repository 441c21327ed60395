"""Just enough HTTP to ask a schema registry: one request, one answer, one connection, in bounded time and memory.

It runs on the event loop like everything else of the client, so it neither blocks it nor needs a package. The
registry's own words are those of ``registry.py``; ``tokens.py`` asks issuers of tokens by it.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from barnabas.client.errors import RegistryUnreachable
from barnabas.model.errors import BarnabasError

if TYPE_CHECKING:
    from ssl import SSLContext

ANSWER_BYTES_MAX: Final = 16 << 20
LINE_BYTES_MAX: Final = 64 << 10
HEADER_LINES_MAX: Final = 200


class HttpAnswer(NamedTuple):
    status: int
    body: bytes


async def ask(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str],
    timeout_ms: int,
    ssl: SSLContext | None = None,
    what: str = "the schema registry",
    unreachable: type[BarnabasError] = RegistryUnreachable,
) -> HttpAnswer:
    """One request; ``unreachable``, which speaks of ``what``, for everything that is not an answer in HTTP."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise unreachable(f"{url!r} is not the address of {what}")
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    said = {"host": parts.netloc.rpartition("@")[2], "accept": "*/*", "connection": "close", **headers}
    if parts.username is not None:
        said["authorization"] = basic(unquote(parts.username), unquote(parts.password or ""))
    if body is not None:
        said["content-length"] = str(len(body))
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in said.items()) + "\r\n"
    place = f"{parts.hostname}:{port}"
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            reader, writer = await asyncio.open_connection(
                parts.hostname, port, limit=LINE_BYTES_MAX, ssl=(ssl or True) if is_secure else None
            )
            try:
                writer.write(head.encode("latin-1") + (body or b""))
                await writer.drain()
                return await _answer(reader)
            finally:
                writer.close()
    except TimeoutError:
        raise unreachable(f"{what} at {place} did not answer within {timeout_ms} ms") from None
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise unreachable(f"{what} at {place}: {error}") from error


def basic(username: str, password: str) -> str:
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


async def _answer(reader: asyncio.StreamReader) -> HttpAnswer:
    version, _, rest = (await reader.readline()).decode("latin-1").partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("what answers there does not speak HTTP")
    status = int(rest[:3])
    headers: dict[str, str] = {}
    for _ in range(HEADER_LINES_MAX):
        line = (await reader.readline()).decode("latin-1").strip()
        if not line:
            break
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    else:
        raise ValueError("the answer has too many headers")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return HttpAnswer(status, await _chunks(reader))
    if "content-length" in headers:
        size = int(headers["content-length"])
        _check(size)
        return HttpAnswer(status, await reader.readexactly(size))
    body = bytearray()
    while piece := await reader.read(LINE_BYTES_MAX):
        body += piece
        _check(len(body))
    return HttpAnswer(status, bytes(body))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        _check(len(body) + size)
        body += await reader.readexactly(size)
        await reader.readline()
        if not size:
            return bytes(body)


def _check(size: int) -> None:
    if not 0 <= size <= ANSWER_BYTES_MAX:
        raise ValueError(f"an answer of {size} bytes is too large")
