"""Keys, certificates and trust of a listener are renewed while the broker runs, as Kafka does it; bad ones are not."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from certificates import Authority, Identity
from talk import address_of

from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import Change, ConfigEntry, ConfigSource, Operation, Resource, ResourceKind
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError
from barnabas.testing import Broker
from barnabas.transport.tls import TlsFiles, server_context

OWN = Resource(ResourceKind.BROKER, "1")
KEY_STORE = "listener.name.ssl.ssl.keystore.location"
TRUST_STORE = "listener.name.strict.ssl.truststore.location"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def store(authority: Authority, tmp_path: Path) -> Path:
    """The file that the broker is told of; what is in it changes."""
    path = tmp_path / "server.pem"
    shutil.copy(authority.issue("/O=Test/CN=first").store, path)
    return path


@pytest.fixture
def broker(authority: Authority, store: Path) -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,STRICT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,STRICT:SSL",
        "ssl.keystore.location": str(store),
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.strict.ssl.client.auth": "required",
    }
    with Broker(settings=settings) as running:
        yield running


def alter(broker: Broker, *changes: Change, resource: Resource = OWN) -> ApiError | None:
    async def work() -> ApiError | None:
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            return (await admin.alter_configs({resource: changes}))[resource]

    return asyncio.run(work())


def described(broker: Broker, resource: Resource = OWN) -> dict[str, ConfigEntry]:
    async def work() -> dict[str, ConfigEntry]:
        async with Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            found = (await admin.describe_configs([resource]))[resource]
            assert not isinstance(found, ApiError)
            return found

    return asyncio.run(work())


def greeted_by(broker: Broker, authority: Authority, *, listener: str = "SSL", client: Identity | None = None) -> str:
    """The common name of the certificate that a new connection is shown, after an answer to a request."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    with (
        socket.create_connection(address_of(broker.address_of(listener)), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff")
        if not secure.recv(4):
            raise ConnectionError("the broker hung up")
        shown = secure.getpeercert()
        assert shown is not None
        return dict(pair for (pair,) in shown["subject"])["commonName"]  # type: ignore[misc]


def test_a_new_certificate_is_shown_to_new_connections_without_a_restart(broker: Broker, authority: Authority) -> None:
    assert greeted_by(broker, authority) == "first"
    second = authority.issue("/O=Test/CN=second")
    assert alter(broker, Change(KEY_STORE, str(second.store))) is None
    assert greeted_by(broker, authority) == "second"
    assert alter(broker, Change(KEY_STORE, None, Operation.DELETE)) is None
    assert greeted_by(broker, authority) == "first"


def test_the_same_file_is_read_again_when_the_broker_is_told_so(
    broker: Broker, authority: Authority, store: Path
) -> None:
    assert alter(broker, Change(KEY_STORE, str(store))) is None
    shutil.copy(authority.issue("/O=Test/CN=renewed").store, store)
    assert greeted_by(broker, authority) == "first"
    assert alter(broker, Change(KEY_STORE, str(store))) is None
    assert greeted_by(broker, authority) == "renewed"


def test_a_connection_that_is_there_goes_on_with_what_it_began_with(broker: Broker, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    with (
        socket.create_connection(address_of(broker.address_of("SSL")), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        assert alter(broker, Change(KEY_STORE, str(authority.issue("/O=Test/CN=second").store))) is None
        secure.sendall(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff")
        assert secure.recv(4)


def test_whom_a_listener_trusts_is_replaced_and_not_added_to(
    broker: Broker, authority: Authority, tmp_path: Path
) -> None:
    alice = authority.issue("/O=Test/CN=alice")
    others = Authority(tmp_path / "others", "Others")
    bob = others.issue("/O=Test/CN=bob")
    assert greeted_by(broker, authority, listener="STRICT", client=alice) == "first"
    assert alter(broker, Change(TRUST_STORE, str(others.certificate))) is None
    assert greeted_by(broker, authority, listener="STRICT", client=bob) == "first"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greeted_by(broker, authority, listener="STRICT", client=alice)


def test_keys_may_be_given_as_text_and_are_never_shown(broker: Broker, authority: Authority) -> None:
    second = authority.issue("/O=Test/CN=second")
    chain, key = ("listener.name.ssl.ssl.keystore.certificate.chain", "listener.name.ssl.ssl.keystore.key")
    assert alter(broker, Change(chain, second.chain), Change(key, second.key.read_text())) is None
    assert greeted_by(broker, authority) == "second"
    shown = described(broker)
    assert shown[key].is_sensitive
    assert shown[key].value is None
    assert shown[key].source is ConfigSource.DYNAMIC_BROKER


def test_new_keys_hold_after_a_restart(authority: Authority, store: Path, tmp_path: Path) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": str(store),
    }
    second = authority.issue("/O=Test/CN=second")
    with Broker(settings=settings, data_dir=tmp_path / "data") as broker:
        assert alter(broker, Change(KEY_STORE, str(second.store))) is None
    with Broker(settings=settings, data_dir=tmp_path / "data") as broker:
        assert greeted_by(broker, authority) == "second"
        assert described(broker)[KEY_STORE].value == str(second.store)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (KEY_STORE, "/nowhere/at/all.pem", "No such file"),
        ("listener.name.ssl.ssl.keystore.type", "JKS", "must be one of PEM"),
        ("listener.name.ssl.ssl.client.auth", "required", "listener SSL keeps ssl.client.auth"),
        ("listener.name.ssl.num.io.threads", "9", "cannot be set for one listener"),
        ("listener.name.absent.ssl.keystore.location", "x", "there is no listener ABSENT"),
        ("ssl.keystore.location", "x", "say listener.name.<listener>.ssl.keystore.location"),
        ("sasl.enabled.mechanisms", "PLAIN", "put it into the broker's file and restart it"),
    ],
)
def test_what_cannot_be_taken_up_is_refused_with_a_sentence(
    broker: Broker, authority: Authority, name: str, value: str, reason: str
) -> None:
    error = alter(broker, Change(name, value))
    assert error is not None
    assert reason in error.message
    assert greeted_by(broker, authority) == "first"


def test_a_file_that_is_no_key_is_refused(broker: Broker, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "nonsense.pem").write_text("nonsense")
    error = alter(broker, Change(KEY_STORE, str(tmp_path / "nonsense.pem")))
    assert error is not None
    assert "cannot be used" in error.message
    assert greeted_by(broker, authority) == "first"


def test_keys_that_other_nodes_would_not_trust_are_refused(authority: Authority, store: Path, tmp_path: Path) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": str(store),
        "ssl.truststore.location": str(authority.certificate),
        "inter.broker.listener.name": "SSL",
    }
    stranger = Authority(tmp_path / "strangers", "Strangers").issue("/O=Test/CN=stranger")
    with Broker(settings=settings) as broker:
        plain = broker.address_of("PLAINTEXT")

        async def work() -> list[ApiError | None]:
            async with Admin(Settings.of({"bootstrap.servers": plain})) as admin:
                stores = (stranger.store, authority.issue("/O=Test/CN=second").store)
                return [(await admin.alter_configs({OWN: [Change(KEY_STORE, str(path))]}))[OWN] for path in stores]

        refused, taken = asyncio.run(work())
        assert refused is not None
        assert "not trust" in refused.message
        assert taken is None
        assert greeted_by(broker, authority) == "second"


def shown_by(client: ssl.SSLContext, authority: Authority, server: Identity) -> str:
    """The name in the certificate that a client shows, in a handshake without a network."""
    asking = server_context(
        TlsFiles(key_store=str(server.store), trust_store=str(authority.certificate)), client_auth="required"
    )
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        asking.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    )
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    shown = ends[0].getpeercert()
    assert shown is not None
    return dict(pair for (pair,) in shown["subject"])["commonName"]  # type: ignore[misc]


def test_what_a_broker_shows_to_others_is_renewed_too(authority: Authority, store: Path) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": str(store),
        "ssl.truststore.location": str(authority.certificate),
        "inter.broker.listener.name": "SSL",
    }
    other = authority.issue("/O=Test/CN=other")
    with Broker(settings=settings) as broker:
        tls = broker.node.services.broker_links.tls
        assert tls is not None
        assert shown_by(tls, authority, other) == "first"

        async def work() -> ApiError | None:
            async with Admin(Settings.of({"bootstrap.servers": broker.address_of("PLAINTEXT")})) as admin:
                change = Change(KEY_STORE, str(authority.issue("/O=Test/CN=second").store))
                return (await admin.alter_configs({OWN: [change]}))[OWN]

        assert asyncio.run(work()) is None
        assert shown_by(tls, authority, other) == "second"
