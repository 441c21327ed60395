"""Kafka's own Java client signing in: by every mechanism, over TLS and without, rightly and wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from java_client import RUN_SECONDS_MAX, compiled
from tools.kafka_jars import java_command

sys.path.append(str(Path(__file__).parents[1] / "integration"))

from certificates import Authority
from talk import Talk
from tokens import AUDIENCE, ISSUER, Issuer

from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import MECHANISMS
from barnabas.testing import Broker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

pytestmark = pytest.mark.java

SALT = b"0123456789abcdef"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
REFUSAL = "AuthenticationException"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def broker(authority: Authority, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(issuer.key_set)
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")),
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS, "OAUTHBEARER")),
        "plain.sasl.jaas.config": f'{LOGIN_MODULE} required user_alice="alice-secret";',
        "barnabas.sasl.oauthbearer.jwks.file": str(keys),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with Broker(settings=settings) as running:
        with Talk(running.bootstrap_servers) as talk:
            talk.create("signed")
            for mechanism in MECHANISMS.values():
                row = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    name="alice",
                    mechanism=mechanism.number,
                    iterations=4096,
                    salt=SALT,
                    salted_password=mechanism.salted("alice-secret", SALT, 4096),
                )
                assert talk.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results[0].error_code == 0
        yield running


def produce(address: str, settings: dict[str, str]) -> tuple[bool, str]:
    """Whether one record was written, and what Java said."""
    common = {"max.block.ms": "15000", "delivery.timeout.ms": "15000", "request.timeout.ms": "10000", **settings}
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")
    options += tuple(f"-D{ALLOWED_URLS}={common[name]}" for name in common if name.endswith("token.endpoint.url"))
    arguments = ("produce", address, "signed", *(f"{name}={value}" for name, value in common.items()))
    command = java_command("Probe", *arguments, options=options, classes=str(compiled("Probe")))
    line = json.dumps({"key": None, "value": "aGk=", "headers": [], "timestamp": None}) + "\n"
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    return done.returncode == 0 and "offset" in done.stdout, done.stderr


def proof(mechanism: str, password: str, tmp_path: Path, token: str) -> dict[str, str]:
    if mechanism == "OAUTHBEARER":
        path = tmp_path / "token.jwt"
        path.write_text(token)
        return {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{OAUTH_MODULE} required;",
            "sasl.login.callback.handler.class": OAUTH_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": path.as_uri(),
        }
    module = LOGIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="alice" password="{password}";',
    }


def over(protocol: str, authority: Authority) -> dict[str, str]:
    found = {"security.protocol": protocol}
    if "SSL" in protocol:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate)}
    return found


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", *MECHANISMS, "OAUTHBEARER"])
def test_the_java_client_signs_in(
    broker: Broker, authority: Authority, issuer: Issuer, tmp_path: Path, mechanism: str, protocol: str
) -> None:
    settings = {**over(protocol, authority), **proof(mechanism, "alice-secret", tmp_path, issuer.token())}
    is_written, said = produce(broker.address_of(protocol), settings)
    assert is_written, said[-2000:]


@pytest.mark.parametrize("mechanism", ["PLAIN", *MECHANISMS, "OAUTHBEARER"])
def test_the_java_client_with_a_wrong_proof_is_told_so(
    broker: Broker, authority: Authority, issuer: Issuer, tmp_path: Path, mechanism: str
) -> None:
    wrong = proof(mechanism, "bob-secret", tmp_path, issuer.token(aud="another"))
    is_written, said = produce(broker.address_of("SASL_PLAINTEXT"), {**over("SASL_PLAINTEXT", authority), **wrong})
    assert not is_written
    assert REFUSAL in said, said[-2000:]


def test_the_java_client_shows_its_certificate(broker: Broker, authority: Authority) -> None:
    carol = authority.issue("/O=Test/CN=carol")
    store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(carol.store)}
    is_written, said = produce(broker.address_of("SSL"), {**over("SSL", authority), **store})
    assert is_written, said[-2000:]


def test_the_java_client_without_a_certificate_is_refused(broker: Broker, authority: Authority) -> None:
    is_written, _ = produce(broker.address_of("SSL"), over("SSL", authority))
    assert not is_written
