"""A console over real HTTP, in the test's process, for a broker of the test; and a client with a session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from barnabas.console.application import Console
from barnabas.console.clusters import Clusters, ClusterSource
from barnabas.rest.access import Access
from barnabas.rest.server import Server


@asynccontextmanager
async def console(servers: str, settings: dict[str, str] | None = None, **options: Any) -> AsyncIterator[str]:
    """The URL of a console that serves the cluster ``local``."""
    source = ClusterSource("local", {"bootstrap.servers": servers, **(settings or {})})
    service = Console(Clusters([source]), access=Access(listens_on="127.0.0.1"), **options)
    server = Server(service, host="127.0.0.1", port=0)
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()
        await service.close()


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that has a session and sends its CSRF token."""
    async with httpx.AsyncClient(base_url=f"{url}/api", timeout=30) as client:
        answer = await client.get("/session")
        client.headers["X-Csrf-Token"] = answer.json()["csrf_token"]
        yield client
