"""A small HTTP/1.1 client: one request, one response, one connection, in bounded time and memory.

It follows no redirects, since an address that is allowed must not lead elsewhere, and knows http and https only. The
broker fetches the keys of token issuers with it; the client asks token issuers and schema registries.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting

SCHEMES: Final = {"http": 80, "https": 443}
HEAD_BYTES_MAX: Final = 64 * 1024
HEADERS_MAX: Final = 200
PIECE_BYTES: Final = 64 * 1024
OK: Final = 200
NO_BODY: Final = (204, 304)


class RequestFailed(BarnabasError):
    """There is no usable response; the message says why, and never contains credentials."""


class Address(NamedTuple):
    host: str
    port: int
    target: str
    is_secure: bool

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]  # by lower-case name
    body: bytes


def parse_url(url: str) -> Address:
    """Raises InvalidSetting unless it is an http or https URL without credentials."""
    address, authorization = _split(url)
    if authorization is not None:
        raise InvalidSetting("the URL must not contain credentials")
    return address


def basic(username: str, password: str) -> str:
    """The Authorization header for a user name and a password (RFC 7617)."""
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


def bearer(token: str) -> str:
    """The Authorization header for a token (RFC 6750)."""
    return f"Bearer {token}"


async def get(url: str, *, size_bytes_max: int, timeout_seconds: float, tls: ssl.SSLContext | None = None) -> bytes:
    """Return the body of a response with status 200; raises RequestFailed for any other response."""
    parse_url(url)
    try:
        response = await request("GET", url, size_bytes_max=size_bytes_max, timeout_seconds=timeout_seconds, tls=tls)
    except RequestFailed as error:
        raise RequestFailed(f"{url} cannot be fetched: {error}") from error
    if response.status != OK:
        raise RequestFailed(f"{url} cannot be fetched: the status of the response is {response.status}")
    return response.body


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    size_bytes_max: int,
    timeout_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> Response:
    """Send one request and return the response, whatever its status; raises RequestFailed if there is none.

    Names of ``headers`` are lower case. Credentials in the URL become an Authorization header, unless there is one.
    ``size_bytes_max`` limits the body of the response; without ``tls`` the system's certificates are trusted.
    """
    address, authorization = _split(url)
    default_port = SCHEMES["https" if address.is_secure else "http"]
    sent = {"host": address.place.removesuffix(f":{default_port}"), "accept": "application/json", "connection": "close"}
    if authorization is not None:
        sent["authorization"] = authorization
    sent |= headers or {}
    if body is not None:
        sent["content-length"] = str(len(body))
    head = _head(method, address.target, sent)
    context = (tls or ssl.create_default_context()) if address.is_secure else None
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=context, limit=HEAD_BYTES_MAX
            )
            try:
                writer.write(head + (body or b""))
                await writer.drain()
                return await _response(reader, size_bytes_max, is_head=method == "HEAD")
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise RequestFailed(f"{address.place} did not answer within {timeout_seconds * 1000:g} ms") from None
    except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
        raise RequestFailed(f"{address.place}: {error}") from error


def _split(url: str) -> tuple[Address, str | None]:
    """The address of a URL, and the Authorization header if the URL has credentials."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidSetting(f"{_without_credentials(url)!r} is not a URL") from None
    if parts.scheme not in SCHEMES or not parts.hostname or any(ord(letter) <= 32 for letter in url):
        raise InvalidSetting(f"{_without_credentials(url)!r} is not an http or https URL")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    address = Address(parts.hostname, port or SCHEMES[parts.scheme], target, parts.scheme == "https")
    if parts.username is None:
        return address, None
    return address, basic(unquote(parts.username), unquote(parts.password or ""))


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise InvalidSetting("a header of an HTTP request must not contain line breaks")
    try:
        return "\r\n".join([*lines, "", ""]).encode("latin-1")
    except UnicodeEncodeError:
        raise InvalidSetting("the URL or a header of an HTTP request has characters that HTTP does not allow") from None


async def _response(reader: asyncio.StreamReader, size_bytes_max: int, *, is_head: bool) -> Response:
    status = 100
    while status < OK:  # interim responses come before the real one
        status, headers = _parse_head(await reader.readuntil(b"\r\n\r\n"))
    if is_head or status in NO_BODY:
        return Response(status, headers, b"")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Response(status, headers, await _read_chunks(reader, size_bytes_max))
    if "content-length" in headers:
        size_bytes = int(headers["content-length"])
        _check(size_bytes, size_bytes_max)
        return Response(status, headers, await reader.readexactly(size_bytes))
    return Response(status, headers, await _read_rest(reader, size_bytes_max))


def _parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isdecimal() and len(words[1]) == 3):
        raise ValueError("the response is not HTTP")
    if len(lines) > HEADERS_MAX:
        raise ValueError(f"the response has more than {HEADERS_MAX} headers")
    pairs = (line.partition(":") for line in lines)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_chunks(reader: asyncio.StreamReader, size_bytes_max: int) -> bytes:
    body = bytearray()
    while True:
        size_bytes = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size_bytes == 0:
            return bytes(body)
        _check(size_bytes, size_bytes_max - len(body))
        body += await reader.readexactly(size_bytes)
        await reader.readexactly(2)


async def _read_rest(reader: asyncio.StreamReader, size_bytes_max: int) -> bytes:
    body = bytearray()
    while piece := await reader.read(PIECE_BYTES):
        body += piece
        _check(len(body), size_bytes_max)
    return bytes(body)


def _check(size_bytes: int, size_bytes_max: int) -> None:
    if not 0 <= size_bytes <= size_bytes_max:
        raise ValueError(f"the response is larger than allowed: {size_bytes} bytes, and {size_bytes_max} are left")
