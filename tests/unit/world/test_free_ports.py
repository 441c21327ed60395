"""Ports for brokers that will be started again: different ones, and none that an outgoing connection may take."""

from __future__ import annotations

import socket

import pytest

from barnabas.world.real import PORTS, free_ports


def test_free_ports_are_different_and_can_be_had() -> None:
    ports = free_ports("127.0.0.1", 20)
    assert len(set(ports)) == 20
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_no_outgoing_connection_takes_a_free_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(50):
            with socket.create_connection(server.getsockname()) as connection:
                assert connection.getsockname()[1] not in PORTS


def test_an_address_that_is_not_of_this_machine_has_no_free_ports() -> None:
    with pytest.raises(OSError, match="assign requested address"):
        free_ports("192.0.2.1", 1)
