"""Our client signs in by tokens: from a function, from a coroutine, from an issuer; and says why if it may not."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from small_http import Answer, Asked, SmallHttpServer
from tokens import AUDIENCE, ISSUER, LISTENER, Issuer

from barnabas import ProducerSettings, blocking
from barnabas.client.admin.client import Admin
from barnabas.client.errors import IssuerUnreachable, NoToken
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.testing import Broker

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def broker(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    path: Path = tmp_path_factory.mktemp("oauth") / "keys.json"
    path.write_bytes(issuer.key_set)
    settings = {
        **LISTENER,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "barnabas.sasl.oauthbearer.jwks.file": str(path),
    }
    with Broker(settings=settings) as running:
        yield running


class TokenServer(SmallHttpServer):
    """Gives out tokens by client id and secret; ``status``, ``life`` and ``body`` may be changed."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.status = 200
        self.life: Any = 3600
        self.body: bytes | None = None
        super().__init__("/token")

    def respond(self, asked: Asked) -> Answer:
        who = b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
        self.asked.append((who, parse_qs(asked.body.decode())))
        said = {"access_token": self.issuer.token(), "expires_in": self.life, "token_type": "Bearer"}
        return Answer(
            self.status if who == "me:hush" else 401, json.dumps(said).encode() if self.body is None else self.body
        )


@pytest.fixture
def server(issuer: Issuer) -> Iterator[TokenServer]:
    with TokenServer(issuer) as running:
        yield running


def settings(broker: Broker, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.address_of("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "default.api.timeout.ms": 1_500,
        **more,
    }


def by_secret(broker: Broker, server: TokenServer, secret: str = "hush") -> dict[str, Any]:
    return settings(
        broker,
        **{
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": secret,
            "sasl.oauthbearer.scope": "logs",
        },
    )


def signed_in(told: dict[str, Any], times: int = 1) -> bool:
    async def ask() -> bool:
        async with Admin(Settings.of(told)) as admin:
            for _ in range(times):
                await admin.cluster.retrying(admin.cluster.all_topics)
                for connection in admin.cluster._connections.values():
                    connection.drop()
            return True

    return asyncio.run(ask())


def test_a_function_gives_the_token(broker: Broker, issuer: Issuer) -> None:
    threads: list[str] = []

    def token() -> str:
        threads.append(threading.current_thread().name)
        return issuer.token()

    assert signed_in(settings(broker, sasl_oauthbearer_token_provider=token))
    assert threading.main_thread().name not in threads  # it may take its time


def test_a_coroutine_gives_the_token(broker: Broker, issuer: Issuer) -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return issuer.token()

    assert signed_in(settings(broker, sasl_oauthbearer_token_provider=token))


def test_the_blocking_producer_signs_in_by_a_token(broker: Broker, issuer: Issuer, name: str) -> None:
    told = settings(broker, sasl_oauthbearer_token_provider=issuer.token)
    with blocking.Producer(ProducerSettings.of(told)) as producer:
        assert producer.send(name, b"v").offset == 0


def test_a_token_that_the_broker_refuses_is_an_error_with_its_reason(broker: Broker, issuer: Issuer) -> None:
    for wrong in ({"aud": "another"}, {"seconds": -10_000}):
        told = settings(broker, sasl_oauthbearer_token_provider=lambda wrong=wrong: issuer.token(**wrong))
        with pytest.raises(ApiError) as refused:
            signed_in(told)
        assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("wrong", ["", "two words", "line\x01end", 7, None])
def test_what_is_no_token_is_not_sent(broker: Broker, wrong: Any) -> None:
    async def give() -> Any:
        return wrong

    with pytest.raises(NoToken):
        signed_in(settings(broker, sasl_oauthbearer_token_provider=give))


def test_a_function_that_fails_says_how(broker: Broker) -> None:
    with pytest.raises(NoToken, match="ZeroDivisionError"):
        signed_in(settings(broker, sasl_oauthbearer_token_provider=lambda: 1 // 0))


def test_an_issuer_is_asked_by_id_and_secret_and_its_token_is_kept(broker: Broker, server: TokenServer) -> None:
    assert signed_in(by_secret(broker, server), times=3)
    assert server.asked == [("me:hush", {"grant_type": ["client_credentials"], "scope": ["logs"]})]


@pytest.mark.parametrize("life", [0, None, "soon", -1, True])
def test_a_token_of_unknown_life_is_not_kept(broker: Broker, server: TokenServer, life: Any) -> None:
    server.life = life
    assert signed_in(by_secret(broker, server), times=3)
    assert len(server.asked) == 3


def test_id_and_secret_may_be_in_javas_notation(broker: Broker, server: TokenServer) -> None:
    told = settings(
        broker,
        **{
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.jaas.config": f'{MODULE} required clientId="me" clientSecret="hush" scope="all";',
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
            "OAuthBearerLoginCallbackHandler",
        },
    )
    assert signed_in(told)
    assert server.asked[0][1]["scope"] == ["all"]


def test_an_issuer_that_refuses_is_not_asked_again(broker: Broker, server: TokenServer) -> None:
    with pytest.raises(NoToken, match="401") as refused:
        signed_in(by_secret(broker, server, "guess"))
    assert len(server.asked) == 1
    assert not refused.value.retriable
    assert "guess" not in str(refused.value)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"access_token": 7}', b'{"access_token": "a b"}', b"\xff" * 9])
def test_an_answer_without_a_token_is_a_typed_error(broker: Broker, server: TokenServer, body: bytes) -> None:
    server.body = body
    with pytest.raises(NoToken, match="no access_token"):
        signed_in(by_secret(broker, server))


def test_an_issuer_that_is_not_there_is_waited_for_as_long_as_the_call_may_take(
    broker: Broker, server: TokenServer
) -> None:
    server.status = 503
    with pytest.raises(IssuerUnreachable):
        signed_in(by_secret(broker, server))
    assert len(server.asked) > 1
    gone = {**by_secret(broker, server), "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    with pytest.raises(IssuerUnreachable, match="issuer of tokens"):
        signed_in(gone)
