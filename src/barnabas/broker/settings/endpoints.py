"""Addresses as Kafka writes them: ``NAME://host:port``, where the name is the listener's.

Used by the settings to check them, by the node to listen, and by the handlers that tell clients where to go.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting

HTTP_PORT: Final = 9644  # where Prometheus looks for brokers that are no JVM
FIRST_FREE: Final = -1  # as a port: from there on, one that nobody has
PORT_MAX: Final = 65535
WILDCARDS: Final = ("", "0.0.0.0", "::")  # noqa: S104


class CannotListen(BarnabasError):
    """An address that is in use, or is none of this machine's."""

    def __init__(self, where: object, error: Exception) -> None:
        reason = (getattr(error, "strerror", None) or str(error)).rpartition(": ")[2]
        super().__init__(f"cannot listen on {where}: {reason}")
        self.is_listener_taken = isinstance(where, Endpoint) and getattr(error, "errno", None) == errno.EADDRINUSE


def reachable(host: str) -> str:
    """Where a client on this machine finds what listens at this address."""
    return "127.0.0.1" if host in WILDCARDS else f"[{host}]" if ":" in host else host


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        return self.host in WILDCARDS


def parse_endpoint(text: str) -> Endpoint:
    name, separator, rest = text.partition("://")
    host, colon, port = rest.rpartition(":")
    if not (separator and name and colon and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise InvalidSetting(f"{text!r} is not NAME://host:port")
    return Endpoint(name.upper(), host.removeprefix("[").removesuffix("]"), int(port))


def parse_endpoints(texts: Iterable[str]) -> tuple[Endpoint, ...]:
    endpoints = tuple(parse_endpoint(text) for text in texts)
    if not endpoints:
        raise InvalidSetting("at least one listener is needed")
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSetting(f"the listener {name} is there twice")
    return endpoints


def clash(endpoints: Iterable[Endpoint]) -> str | None:
    """A sentence about the first two that cannot both be listened on."""
    seen: list[Endpoint] = []
    for endpoint in endpoints:
        for other in seen:
            if endpoint.port and endpoint.port == other.port and _is_overlapping(endpoint, other):
                return f"{other} and {endpoint} cannot have the same port"
        seen.append(endpoint)
    return None


def _is_overlapping(one: Endpoint, other: Endpoint) -> bool:
    if not (one.host and other.host):
        return True  # every interface, of IPv4 and IPv6
    is_same_family = (":" in one.host) == (":" in other.host)
    return is_same_family and (one.host == other.host or one.is_wildcard or other.is_wildcard)
