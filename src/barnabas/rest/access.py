"""Which Host and Origin headers a service accepts: the defence against DNS rebinding and cross-site requests.

A page of a foreign site can make a browser send requests to any address, loopback included. Rebinding needs a DNS name
of the attacker in the Host header, so addresses are always accepted and names only if they are known; requests that
carry an Origin must come from the service's own pages or from a configured origin.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

LOCALHOST = "localhost"


def split_host(header: str) -> tuple[str, str]:
    """The name or address and the port of a Host header, in lower case; the port may be empty."""
    text = header.strip().lower()
    if text.startswith("["):
        name, _, rest = text[1:].partition("]")
        return name, rest.removeprefix(":")
    name, _, port = text.partition(":")
    return name, port


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    return host == LOCALHOST or (is_address(host) and ipaddress.ip_address(host).is_loopback)


class Access:
    """``hosts`` and ``origins`` are accepted beside the defaults; an origin is written as ``https://host:port``."""

    def __init__(self, *, listens_on: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        names = {LOCALHOST, socket.gethostname().lower(), *(split_host(each)[0] for each in hosts)}
        if not is_address(listens_on):
            names.add(listens_on.lower())
        self._names = frozenset(names)
        self._origins = frozenset(each.lower().rstrip("/") for each in origins)
        # A name without a dot (a container's, a service's) is resolved by the local network alone.
        self._accepts_short_names = bool(listens_on) and not is_loopback(listens_on)

    def allows_host(self, header: str) -> bool:
        name, port = split_host(header)
        if port and not port.isdecimal():
            return False
        if is_address(name) or name in self._names:
            return True
        return self._accepts_short_names and bool(name) and "." not in name

    def allows_origin(self, origin: str, *, scheme: str, host: str) -> bool:
        """Whether a request with this Origin header, made to ``scheme://host``, may be answered."""
        said = origin.strip().lower()
        return said in self._origins or said == f"{scheme}://{host.strip().lower()}"
