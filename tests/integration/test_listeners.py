"""Several listeners: each tells its clients its own address, and without one to tell a client hears the one it used."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from talk import Raw, Talk

from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest

INSIDE, OUTSIDE = ("inside.test", 1111), ("outside.test", 2222)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0,HIDDEN://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,HIDDEN:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "advertised.listeners": "INSIDE://{}:{},OUTSIDE://{}:{}".format(*INSIDE, *OUTSIDE),
    }
    with Broker(settings=settings) as running:
        yield running


def told(address: str) -> set[tuple[str, int]]:
    """Every address of a broker that a client hears."""
    with Talk(address) as talk:
        found = {(node.host, node.port) for node in talk.ask(MetadataRequest(topics=[])).brokers}
        found |= {(node.host, node.port) for node in talk.ask(DescribeClusterRequest()).brokers}
        for _ in range(100):
            (row,) = talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators
            if row.error_code == 0:
                found.add((row.host, row.port))
                break
        return found


@pytest.mark.parametrize(("name", "address"), [("INSIDE", INSIDE), ("OUTSIDE", OUTSIDE)])
def test_a_client_hears_the_address_of_the_listener_that_it_used(
    broker: Broker, name: str, address: tuple[str, int]
) -> None:
    assert told(broker.address_of(name)) == {address}


def test_a_listener_that_is_not_advertised_tells_of_no_broker(broker: Broker) -> None:
    with Talk(broker.address_of("HIDDEN")) as talk:
        assert talk.ask(MetadataRequest(topics=[])).brokers == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "127.8.8.8"])
def test_in_development_a_client_hears_the_address_that_it_used(host: str) -> None:
    """As from a container, another machine or through a name: whatever worked once works again."""
    with Broker(settings={"listeners": "PLAINTEXT://0.0.0.0:0"}) as running:
        port = running.node.listeners[0].port
        assert told(f"{host}:{port}") == {(host, port)}


def test_a_client_that_finds_the_broker_over_ipv6_hears_that() -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("there is no IPv6 here")
    with Broker(settings={"listeners": "PLAINTEXT://[::1]:0"}) as running:
        port = running.node.listeners[0].port
        assert told(f"::1:{port}") == {("::1", port)}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"listeners": "MINE://127.0.0.1:0"}, "what is spoken on MINE"),
        ({"listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "A:SMOKE"}, "not NAME:PROTOCOL"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}, "there twice"),
        ({"advertised.listeners": "OTHER://x.test:1"}, "not among the listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "no address that a client could connect to"),
    ],
    ids=range(5),
)
def test_listeners_that_cannot_be_keep_the_broker_from_starting(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence), Broker(settings=settings):
        pass


# --- before sign-in ---------------------------------------------------------------------------------------------------

SIGN_IN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "connections.max.idle.ms": "60000",
}


def test_who_sends_a_byte_now_and_then_and_never_signs_in_is_seen_off() -> None:
    with Broker(settings=SIGN_IN) as running, Raw(running.bootstrap_servers) as raw:
        for byte in struct.pack(">i", 400_000) + bytes(4):
            with suppress(ConnectionError):
                raw.send(bytes([byte]))
            running.clock.advance("20s")
        assert raw.is_closed()


def test_cve_2022_34917_strangers_who_claim_large_frames_cost_little_memory() -> None:
    """Two hundred of them, each with half a megabyte to come that never comes."""
    with Broker(settings=SIGN_IN) as running:
        guests = [Raw(running.bootstrap_servers) for _ in range(200)]
        try:
            before = resident_bytes()
            for guest in guests:
                guest.send(struct.pack(">i", 524_288) + bytes(10))
            with Talk(running.bootstrap_servers) as talk:
                talk.ask(ApiVersionsRequest(), 0)  # they have been heard by now
            assert resident_bytes() - before < 50 * 1024 * 1024
        finally:
            for guest in guests:
                guest.socket.close()


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
