"""Our own client and command line sign in, by every mechanism, over TLS and without, and say why if they may not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from certificates import Authority
from talk import Talk

from barnabas.cli.main import main
from barnabas.client.admin.client import Admin
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.settings import InvalidSetting
from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import MECHANISMS
from barnabas.testing import Broker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

EVERY_MECHANISM = ("PLAIN", *MECHANISMS)


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(EVERY_MECHANISM),
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_alice=alice-secret;",
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with Broker(settings=settings) as running, Talk(running.bootstrap_servers) as talk:
        talk.create("signed")
        for mechanism in MECHANISMS.values():
            row = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name="alice",
                mechanism=mechanism.number,
                iterations=4096,
                salt=b"salt",
                salted_password=mechanism.salted("alice-secret", b"salt", 4096),
            )
            assert talk.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results[0].error_code == 0
        yield running


def settings(broker: Broker, authority: Authority, protocol: str, mechanism: str, password: str) -> Settings:
    return Settings(
        bootstrap_servers=(broker.address_of(protocol),),
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        sasl_username="alice",
        sasl_password=password,
        ssl_truststore_location=str(authority.certificate) if "SSL" in protocol else "",
    )


def topics(settings: Settings) -> list[str]:
    async def ask() -> list[str]:
        async with Admin(settings) as admin:
            return [topic.name for topic in await admin.cluster.all_topics()]

    return asyncio.run(ask())


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_our_client_signs_in(broker: Broker, authority: Authority, protocol: str, mechanism: str) -> None:
    assert "signed" in topics(settings(broker, authority, protocol, mechanism, "alice-secret"))


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
def test_our_client_signs_in_by_javas_notation(broker: Broker, mechanism: str) -> None:
    module = LOGIN_MODULE if mechanism == "PLAIN" else "org.apache.kafka.common.security.scram.ScramLoginModule"
    told = {
        "bootstrap.servers": broker.address_of("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="alice" password="alice-secret";',
    }
    assert "signed" in topics(Settings.of(told))


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
def test_our_client_with_a_wrong_password_is_told_so(broker: Broker, authority: Authority, mechanism: str) -> None:
    with pytest.raises(ApiError) as refused:
        topics(settings(broker, authority, "SASL_PLAINTEXT", mechanism, "guess"))
    assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED
    assert "guess" not in str(refused.value)


def test_our_client_shows_its_certificate(broker: Broker, authority: Authority) -> None:
    own = authority.issue("/CN=carol")
    ours = {"security_protocol": "SSL", "ssl_truststore_location": str(authority.certificate)}
    address = (broker.address_of("SSL"),)
    assert "signed" in topics(Settings(bootstrap_servers=address, ssl_keystore_location=str(own.store), **ours))
    with pytest.raises(BarnabasError):
        topics(Settings(bootstrap_servers=address, default_api_timeout_ms=1000, **ours))


def test_our_client_does_not_trust_a_stranger(broker: Broker) -> None:
    strange = Settings(bootstrap_servers=(broker.address_of("SSL"),), security_protocol="SSL")
    with pytest.raises(BarnabasError, match=r"(?i)certificate"):
        topics(strange)


def test_a_password_is_not_printed_and_a_missing_user_is_named() -> None:
    told = Settings(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_username="a", sasl_password="hush")
    assert "hush" not in repr(told)
    with pytest.raises(InvalidSetting, match=r"sasl\.mechanism and sasl\.username"):
        Settings(security_protocol="SASL_SSL")


def test_the_command_line_signs_in(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["topic", "list", "-b", broker.address_of("SASL_PLAINTEXT")]
    for pair in ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512", "sasl.username=alice"):
        words += ["-X", pair]
    assert main([*words, "-X", "sasl.password=alice-secret"]) == 0
    assert "signed" in capsys.readouterr().out
    assert main([*words, "-X", "sasl.password=guess"]) == 1
    assert "SASL_AUTHENTICATION_FAILED" in capsys.readouterr().err
