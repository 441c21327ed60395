"""One GET for a small document, such as a set of keys: a size, a time, no redirects, and only http and https.

It knows nothing of what it fetches. The broker asks it for the keys of an issuer of tokens.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting

SCHEMES: Final = {"http": 80, "https": 443}
HEAD_BYTES_MAX: Final = 16 * 1024
OK: Final = b"200"


class FetchFailed(BarnabasError):
    """The document could not be had; the sentence says why."""


class Address(NamedTuple):
    host: str
    port: int
    target: str
    is_secure: bool


def parse_url(url: str) -> Address:
    """InvalidSetting unless it is a plain http or https address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidSetting(f"{url!r} is no address") from None
    if parts.scheme not in SCHEMES:
        raise InvalidSetting(f"{url!r}: only http and https addresses are fetched")
    if not parts.hostname or parts.username is not None or any(ord(letter) <= 32 for letter in url):
        raise InvalidSetting(f"{url!r} is no address of a document")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(parts.hostname, port or SCHEMES[parts.scheme], target, parts.scheme == "https")


async def get(url: str, *, size_bytes_max: int, timeout_seconds: float, tls: ssl.SSLContext | None = None) -> bytes:
    """The document, or FetchFailed. A redirect is a failure: an address that is allowed must not lead elsewhere."""
    address = parse_url(url)
    context = (tls or ssl.create_default_context()) if address.is_secure else None
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _get(address, context, size_bytes_max)
    except TimeoutError:
        raise FetchFailed(f"{url} did not answer within {timeout_seconds:g} seconds") from None
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise FetchFailed(f"{url} cannot be fetched: {error}") from error


async def _get(address: Address, context: ssl.SSLContext | None, size_bytes_max: int) -> bytes:
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, limit=HEAD_BYTES_MAX)
    try:
        host = address.host if address.port in SCHEMES.values() else f"{address.host}:{address.port}"
        head = f"GET {address.target} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        writer.write(head.encode("ascii"))
        status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
        if status != OK:
            raise FetchFailed(f"the answer was {status.decode(errors='replace')}")
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            return await _read_chunks(reader, size_bytes_max)
        if b"content-length" in headers:
            size_bytes = int(headers[b"content-length"])
            if not 0 <= size_bytes <= size_bytes_max:
                raise FetchFailed(f"the document has {size_bytes} bytes, more than {size_bytes_max}")
            return await reader.readexactly(size_bytes)
        return await _read_rest(reader, size_bytes_max)
    finally:
        writer.transport.abort()


def _read_head(head: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    first, *lines = head.rstrip().split(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        raise FetchFailed("the answer is not HTTP")
    pairs = (line.partition(b":") for line in lines)
    return words[1], {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_chunks(reader: asyncio.StreamReader, size_bytes_max: int) -> bytes:
    found = bytearray()
    while True:
        size_bytes = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size_bytes == 0:
            return bytes(found)
        if size_bytes < 0 or len(found) + size_bytes > size_bytes_max:
            raise FetchFailed(f"the document has more than {size_bytes_max} bytes")
        found += await reader.readexactly(size_bytes)
        await reader.readexactly(2)


async def _read_rest(reader: asyncio.StreamReader, size_bytes_max: int) -> bytes:
    found = bytearray()
    while piece := await reader.read(HEAD_BYTES_MAX):
        found += piece
        if len(found) > size_bytes_max:
            raise FetchFailed(f"the document has more than {size_bytes_max} bytes")
    return bytes(found)
