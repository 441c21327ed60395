"""How clients sign in to a cluster under test: what its listener is told, what clients are told, what must run beside.

Both kinds of broker get the same settings: PEM files, users in a JAAS line, keys of an issuer of tokens at an address.
The certificates are made anew each time, in the directory of the leg, and so are the issuer's keys. Used by the suite
of librdkafka, through `conformance.cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.kafka_jars import java_command

from conformance.certificates import KEY_PASSWORD, Authority
from conformance.fetched import run_quietly
from conformance.token_server import AUDIENCE, ISSUER, TokenServer

USER, PASSWORD = "testuser", "testpass"
REAUTHENTICATION_MS = 10_000
# A test wants to hear within the handshake that its certificate is refused, as in librdkafka's own harness; in TLS 1.3
# the client has ended its part of it by then.
_CERTIFICATES_ASKED_FOR = {"ssl.client.auth": "required", "ssl.enabled.protocols": "TLSv1.2"}
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_TOKEN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_TOKEN_CHECK = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def _nothing(_: str) -> None:
    """Most ways to sign in need nothing of a running cluster."""


@dataclass(frozen=True, slots=True)
class Security:
    """`listener_settings` are for the clients' listener alone; `prepare` is called once the cluster is up."""

    protocol: str
    listener_settings: Mapping[str, str] = field(default_factory=dict)
    broker_settings: Mapping[str, str] = field(default_factory=dict)
    client_settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    java_options: tuple[str, ...] = ()
    prepare: Callable[[str], None] = _nothing


@contextmanager
def certificates(directory: Path) -> Iterator[Security]:
    """Clients show a certificate; librdkafka's test finds it in every form by the names of its environment."""
    authority, unused = Authority(directory, "authority"), Authority(directory, "unused")
    server, client = authority.issue("broker"), authority.issue("client")
    both = directory / "all_cas.pem"
    both.write_text(unused.certificate.read_text() + authority.certificate.read_text())
    yield Security(
        "SSL",
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(server.store),
            "ssl.key.password": KEY_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
            **_CERTIFICATES_ASKED_FOR,
        },
        client_settings={
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": str(client.certificate),
            "ssl.key.location": str(client.key),
            "ssl.key.password": KEY_PASSWORD,
        },
        environment={
            "SSL_ca_pem": str(authority.certificate),
            "SSL_ca_der": str(authority.certificate_der),
            "SSL_all_cas_pem": str(both),
            "SSL_pub_pem": str(client.certificate),
            "SSL_pub_der": str(client.certificate_der),
            "SSL_priv_pem": str(client.key),
            "SSL_priv_der": str(client.key_der),
            "SSL_pkcs": str(client.bundle),
            "SSL_password": KEY_PASSWORD,
            "SSL_client_auth": "required",
        },
    )


@contextmanager
def plain(_: Path) -> Iterator[Security]:
    """A user and a password, in the clear."""
    jaas = f'{_PLAIN_MODULE} required user_{USER}="{PASSWORD}" user_admin="admin";'
    yield _signed_in("PLAIN", {"plain.sasl.jaas.config": jaas})


@contextmanager
def scram_over_tls(directory: Path) -> Iterator[Security]:
    """A user whose password never crosses the wire, and TLS around it; the user is made with Kafka's own tool."""
    with certificates(directory) as tls:
        signed_in = _signed_in("SCRAM-SHA-512", {"scram-sha-512.sasl.jaas.config": f"{_SCRAM_MODULE} required;"})
        # On a listener where clients sign in, Kafka asks for no certificate.
        listener = {name: text for name, text in tls.listener_settings.items() if name not in _CERTIFICATES_ASKED_FOR}
        yield replace(
            signed_in,
            protocol="SASL_SSL",
            listener_settings={**listener, **signed_in.listener_settings},
            client_settings={**tls.client_settings, **signed_in.client_settings, "security.protocol": "SASL_SSL"},
            prepare=_make_scram_user,
        )


@contextmanager
def tokens(directory: Path) -> Iterator[Security]:
    """Tokens of an issuer that runs beside the cluster, and that clients ask by themselves (OIDC)."""
    with TokenServer(directory) as server:
        listener = {
            "oauthbearer.sasl.server.callback.handler.class": _TOKEN_CHECK,
            "oauthbearer.sasl.jaas.config": f'{_TOKEN_MODULE} required unsecuredLoginStringClaim_sub="unused";',
        }
        signed_in = _signed_in("OAUTHBEARER", listener)
        yield replace(
            signed_in,
            broker_settings={
                **signed_in.broker_settings,
                "sasl.oauthbearer.jwks.endpoint.url": server.keys_url,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "sasl.oauthbearer.expected.issuer": ISSUER,
            },
            client_settings={
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.method": "OIDC",
                "sasl.oauthbearer.client.id": "123",
                "sasl.oauthbearer.client.secret": "abc",
                "sasl.oauthbearer.scope": "test",
                "sasl.oauthbearer.extensions": "ExtensionworkloadIdentity=develC348S,Extensioncluster=lkc123",
                "sasl.oauthbearer.token.endpoint.url": server.token_url,
            },
            environment={
                "VALID_OIDC_URL": server.token_url,
                "INVALID_OIDC_URL": f"{server.token_url}/badformat",
                "EXPIRED_TOKEN_OIDC_URL": f"{server.token_url}/expire",
                "OAUTHBEARER_CLIENT_PRIVATE_KEY": str(server.client_key),
                "OAUTHBEARER_CLIENT_PRIVATE_KEY_ENCRYPTED": str(server.client_key_encrypted),
                "OAUTHBEARER_CLIENT_PRIVATE_KEY_PASSWORD": KEY_PASSWORD,
            },
            java_options=(f"-D{_ALLOWED_URLS}={server.keys_url}",),
        )


def _signed_in(mechanism: str, listener_settings: Mapping[str, str]) -> Security:
    return Security(
        "SASL_PLAINTEXT",
        {"sasl.enabled.mechanisms": mechanism, **listener_settings},
        {"connections.max.reauth.ms": str(REAUTHENTICATION_MS)},
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": mechanism,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        },
    )


def _make_scram_user(bootstrap: str) -> None:
    words = ("--bootstrap-server", bootstrap, "--alter", "--entity-type", "users", "--entity-name", USER)
    run_quietly(
        java_command("kafka.admin.ConfigCommand", *words, "--add-config", f"SCRAM-SHA-512=[password={PASSWORD}]")
    )
