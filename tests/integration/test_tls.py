"""TLS on listeners: clients of others come in, the wrong ones do not, and old protocols are not spoken."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import Authority, Identity
from signed_clients import CLIENTS, WRONG_CLIENTS, WRONGLY, Refused
from talk import Raw, Talk, address_of

from barnabas.broker.settings.security import Protocol
from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.transport.listener import HANDSHAKE_SECONDS_MAX
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

LISTENERS = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,STRICT://127.0.0.1:0"


@pytest.fixture(scope="module")
def server(authority: Authority) -> Identity:
    return authority.issue("/O=Test/CN=localhost")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Identity:
    return authority.issue("/O=Test/CN=alice")


@pytest.fixture(scope="module")
def broker(authority: Authority, server: Identity) -> Iterator[Broker]:
    settings = {
        "listeners": LISTENERS,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,STRICT:SSL",
        "ssl.keystore.location": str(server.store),
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.strict.ssl.client.auth": "required",
        "listener.name.strict.ssl.enabled.protocols": "TLSv1.3",
    }
    with Broker(settings=settings) as running:
        yield running


@pytest.fixture
def topic(broker: Broker, new_name: Callable[[], str]) -> str:
    with Talk(broker.bootstrap_servers) as talk:
        name = new_name()
        talk.create(name)
        return name


@pytest.mark.parametrize("client_name", CLIENTS)
def test_a_client_writes_and_reads_over_tls(broker: Broker, topic: str, authority: Authority, client_name: str) -> None:
    security = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
    assert CLIENTS[client_name](broker.address_of("SSL"), topic, security) == b"hello"


@pytest.mark.parametrize("client_name", CLIENTS)
def test_a_client_that_must_show_a_certificate_comes_in_with_one(
    broker: Broker, topic: str, authority: Authority, client: Identity, client_name: str
) -> None:
    security = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(client.certificate),
        "ssl.key.location": str(client.key),
    }
    assert CLIENTS[client_name](broker.address_of("STRICT"), topic, security) == b"hello"


@pytest.mark.parametrize("client_name", WRONG_CLIENTS)
def test_a_client_without_the_certificate_that_is_asked_for_is_refused(
    broker: Broker, topic: str, authority: Authority, client_name: str
) -> None:
    security = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
    with pytest.raises(Refused):
        WRONGLY[client_name](broker.address_of("STRICT"), topic, security)


def _talk_tls(address: str, context: ssl.SSLContext) -> str | None:
    with (
        socket.create_connection(address_of(address), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff")
        if not secure.recv(4):
            raise ConnectionError("the broker hung up")
        return secure.version()


def test_a_certificate_of_an_authority_that_is_not_trusted_is_refused(
    broker: Broker, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "strangers", "Strangers").issue("/CN=mallory")
    context = ssl.create_default_context(cafile=authority.certificate)
    context.load_cert_chain(stranger.certificate, stranger.key)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _talk_tls(broker.address_of("STRICT"), context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("shows_certificate", "alert"), [(False, "certificate.required|handshake.failure"), (True, "unknown.ca")]
)
def test_a_client_that_is_refused_is_told_why(
    authority: Authority, server: Identity, tmp_path: Path, version: ssl.TLSVersion, shows_certificate: bool, alert: str
) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(server.store),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
    }
    context = ssl.create_default_context(cafile=authority.certificate)
    context.maximum_version = version
    if shows_certificate:
        stranger = Authority(tmp_path / "strangers", "Strangers").issue("/CN=mallory")
        context.load_cert_chain(stranger.certificate, stranger.key)
    with Broker(settings=settings) as broker, pytest.raises(ssl.SSLError, match=f"(?i){alert}"):
        _talk_tls(broker.address_of("SSL"), context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.*deprecated:DeprecationWarning")
def test_tls_below_1_2_is_not_spoken(broker: Broker, authority: Authority, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _talk_tls(broker.address_of("SSL"), context)


def test_a_listener_speaks_only_the_versions_that_it_is_told(
    broker: Broker, authority: Authority, client: Identity
) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    context.load_cert_chain(client.certificate, client.key)
    assert _talk_tls(broker.address_of("STRICT"), context) == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert _talk_tls(broker.address_of("SSL"), context) == "TLSv1.2"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _talk_tls(broker.address_of("STRICT"), context)


def test_plain_bytes_to_a_tls_port_end_the_connection(broker: Broker) -> None:
    """At once: a client that waits for a response would wait for the timeout of the handshake."""
    with Raw(broker.address_of("SSL")) as raw:
        raw.socket.settimeout(HANDSHAKE_SECONDS_MAX - 1)
        raw.send_frame(b"\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff")
        assert raw.is_closed()


def test_tls_to_a_plain_port_ends_the_connection(broker: Broker, authority: Authority) -> None:
    with pytest.raises((ssl.SSLError, OSError)):
        _talk_tls(broker.bootstrap_servers, ssl.create_default_context(cafile=authority.certificate))


def test_each_listener_is_registered_with_its_protocol_and_answers_with_its_own_port(broker: Broker) -> None:
    (node,) = broker.node.services.image.brokers.values()
    protocols = {point.name: point.security_protocol for point in node.end_points}
    assert protocols == {"PLAINTEXT": Protocol.PLAINTEXT, "SSL": Protocol.SSL, "STRICT": Protocol.SSL}
    with Talk(broker.bootstrap_servers) as talk:
        (found,) = talk.ask(DescribeClusterRequest()).brokers
        assert f"{found.host}:{found.port}" == broker.bootstrap_servers


def _start(settings: dict[str, str]) -> None:
    with Broker(settings={"listeners": "SSL://127.0.0.1:0", **settings}):
        pass


def test_keys_may_be_given_as_text_and_encrypted(authority: Authority) -> None:
    locked = authority.issue("/CN=locked", password="open sesame")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.key": locked.key.read_text(),
        "ssl.keystore.certificate.chain": locked.chain,
        "ssl.key.password": "open sesame",
        "ssl.truststore.certificates": authority.certificate.read_text(),
        "ssl.client.auth": "requested",
    }
    with Broker(settings=settings) as running:
        assert _talk_tls(running.bootstrap_servers, ssl.create_default_context(cafile=authority.certificate))


def test_a_tls_listener_that_cannot_be_served_keeps_the_broker_from_starting(
    authority: Authority, server: Identity, tmp_path: Path
) -> None:
    locked = authority.issue("/CN=shut", password="open sesame")
    (tmp_path / "junk.pem").write_text("this is no certificate")
    with pytest.raises(InvalidSetting, match=r"needs ssl\.keystore\.location"):
        _start({})
    with pytest.raises(InvalidSetting, match=r"ssl\.keystore\.location=.*No such file"):
        _start({"ssl.keystore.location": str(tmp_path / "nowhere.pem")})
    with pytest.raises(InvalidSetting, match=r"ssl\.keystore\.location=.*cannot be used"):
        _start({"ssl.keystore.location": str(tmp_path / "junk.pem")})
    with pytest.raises(InvalidSetting, match=r"cannot be used"):
        _start({"ssl.keystore.location": str(locked.store)})
    with pytest.raises(InvalidSetting, match=r"ssl\.client\.auth=required needs ssl\.truststore"):
        _start({"ssl.keystore.location": str(server.store), "ssl.client.auth": "required"})
