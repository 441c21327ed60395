"""How many connections a broker has: one limit for all its listeners, and the door of other brokers stays open."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from talk import address_of

from barnabas.testing import Broker

REQUEST = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff"
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,FIRST://127.0.0.1:0,SECOND://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,FIRST:PLAINTEXT,SECOND:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
}


def is_served(broker: Broker, listener: str, stack: ExitStack) -> bool:
    """A new connection that stays open if it is served."""
    connection = stack.enter_context(socket.create_connection(address_of(broker.address_of(listener)), timeout=10))
    try:
        connection.sendall(REQUEST)
        return connection.recv(4) != b""
    except ConnectionError:
        return False


def test_max_connections_is_for_all_listeners_together() -> None:
    with Broker(settings={**LISTENERS, "max.connections": "3"}) as broker, ExitStack() as stack:
        assert is_served(broker, "FIRST", stack)
        assert is_served(broker, "SECOND", stack)
        with ExitStack() as short:
            assert is_served(broker, "FIRST", short)
            assert not is_served(broker, "SECOND", short)
            assert not is_served(broker, "FIRST", short)
            assert is_served(broker, "PLAINTEXT", short), "other brokers are not kept out by clients"


def test_max_connections_per_ip_is_for_all_listeners_together() -> None:
    with Broker(settings={**LISTENERS, "max.connections.per.ip": "2"}) as broker, ExitStack() as stack:
        assert is_served(broker, "FIRST", stack)
        assert is_served(broker, "SECOND", stack)
        assert not is_served(broker, "FIRST", stack)
        assert not is_served(broker, "PLAINTEXT", stack), "an address is an address"
