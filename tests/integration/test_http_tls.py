"""The HTTP client over TLS: it trusts the certificates that it is given, and no others."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from certificates import Authority

from barnabas.http.client import RequestFailed, Response, request


def ask(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext | None) -> Response:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await reader.read()
        writer.close()

    async def work() -> Response:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls)
        port = server.sockets[0].getsockname()[1]
        try:
            url = f"https://127.0.0.1:{port}/"
            return await request("GET", url, size_bytes_max=100, timeout_seconds=10, tls=client_tls)
        finally:
            server.close()
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)

    return asyncio.run(work())


def test_a_server_is_trusted_by_the_certificates_that_are_given(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.issue("/CN=server")
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(identity.certificate, identity.key)
    client_tls = ssl.create_default_context(cafile=str(authority.certificate))
    assert ask(server_tls, client_tls).body == b"hi"
    with pytest.raises(RequestFailed, match="certificate"):
        ask(server_tls, None)
