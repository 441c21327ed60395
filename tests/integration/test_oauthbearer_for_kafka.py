"""OAUTHBEARER as a file of settings written for Kafka asks for it: the same lines, and no way around the check."""

from __future__ import annotations

from pathlib import Path

import pytest
from talk import Talk
from tokens import AUDIENCE, ISSUER, Issuer, message, unsigned

from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

KAFKA = "org.apache.kafka.common.security.oauthbearer"
HANDLER = "oauthbearer.sasl.server.callback.handler.class"
JAAS = "oauthbearer.sasl.jaas.config"


def settings(directory: Path, issuer: Issuer, **more: str) -> dict[str, str]:
    path = directory / "keys.json"
    path.write_bytes(issuer.key_set)
    lines = {HANDLER: f"{KAFKA}.OAuthBearerValidatorCallbackHandler", JAAS: f"{KAFKA}.OAuthBearerLoginModule required;"}
    return {
        "listeners": "CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "barnabas.sasl.oauthbearer.jwks.file": str(path),
        **{f"listener.name.clients.{name}": text for name, text in {**lines, **more}.items()},
    }


def is_believed(broker: Broker, token: str) -> bool:
    with Talk(broker.bootstrap_servers) as talk:
        assert talk.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER")).error_code == 0
        answer = talk.ask(SaslAuthenticateRequest(auth_bytes=message(token)))
        return answer.error_code == 0 and not answer.auth_bytes


def test_a_file_written_for_kafka_names_who_checks_tokens_and_nobody_else_is_believed(tmp_path: Path) -> None:
    issuer = Issuer()
    with Broker(settings=settings(tmp_path, issuer)) as broker:
        assert is_believed(broker, issuer.token())
        claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": 2_000_000_000}
        assert not is_believed(broker, unsigned({"alg": "none"}, claims))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (HANDLER, f"{KAFKA}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"),
        (HANDLER, "com.example.Believer"),
        (JAAS, "com.sun.security.auth.module.JndiLoginModule required;"),
    ],
)
def test_any_other_checker_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidSetting), Broker(settings=settings(tmp_path, Issuer(), **{name: text})):
        pass
