"""What tests of listeners that change while a broker runs have in common: to change them, and to look at them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from talk import Talk, address_of

from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import Change, ConfigEntry, Operation, Resource, ResourceKind
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.world.real import free_ports

OWN = Resource(ResourceKind.BROKER, "1")
PROTOCOLS = "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT,SECURE:SSL,SIGNED:SASL_PLAINTEXT"


def alter(address: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> ApiError | None:
    """Ask the broker at an address; None as a value takes the setting away."""
    wanted = [
        Change(name, value, Operation.DELETE if value is None else Operation.SET) for name, value in changes.items()
    ]

    async def work() -> ApiError | None:
        async with Admin(Settings.of({"bootstrap.servers": address})) as admin:
            return (await admin.alter_configs({OWN: wanted}, validate_only=validate_only))[OWN]

    return asyncio.run(work())


def described(address: str) -> dict[str, ConfigEntry]:
    async def work() -> dict[str, ConfigEntry]:
        async with Admin(Settings.of({"bootstrap.servers": address})) as admin:
            found = (await admin.describe_configs([OWN]))[OWN]
            assert not isinstance(found, ApiError)
            return found

    return asyncio.run(work())


def free_port() -> int:
    (port,) = free_ports("127.0.0.1", 1)
    return port


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionError:
        return False
    return True


def told(address: str) -> list[tuple[str, int]]:
    """The brokers that a client hears of on a listener."""
    if not is_listening(address_of(address)[1]):
        return []
    with Talk(address) as talk:
        return [(node.host, node.port) for node in talk.ask(MetadataRequest(topics=[])).brokers]
