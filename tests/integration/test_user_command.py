"""``barnabas user``: a user is made on the command line and signs in with the password that was piped in."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator

import pytest
from talk import Talk

from barnabas.cli.main import main
from barnabas.security.scram import MECHANISMS, ScramClient
from barnabas.testing import Broker
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    }
    with Broker(settings=settings) as running:
        yield running


def say(broker: Broker, monkeypatch: pytest.MonkeyPatch, *words: str, typed: str = "") -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return main(["user", *words, "-b", broker.bootstrap_servers])


def can_sign_in(broker: Broker, user: str, password: str, mechanism: str) -> bool:
    with Talk(broker.address_of("SASL_PLAINTEXT")) as talk:
        talk.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
        client = ScramClient(MECHANISMS[mechanism], user, password, nonce=b"c")
        first = talk.ask(SaslAuthenticateRequest(auth_bytes=client.first()))
        return bool(talk.ask(SaslAuthenticateRequest(auth_bytes=client.final(first.auth_bytes))).error_code == 0)


def test_a_user_is_created_listed_given_a_new_password_and_deleted(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(broker, monkeypatch, "create", "alice", typed="first\n") == 0
    assert say(broker, monkeypatch, "create", "alice", "-m", "SCRAM-SHA-256", "-i", "8192", typed="other\n") == 0
    assert can_sign_in(broker, "alice", "first", "SCRAM-SHA-512")
    assert can_sign_in(broker, "alice", "other", "SCRAM-SHA-256")
    assert say(broker, monkeypatch, "create", "alice", typed="second\n") == 0
    assert not can_sign_in(broker, "alice", "first", "SCRAM-SHA-512")
    assert can_sign_in(broker, "alice", "second", "SCRAM-SHA-512")
    capsys.readouterr()
    assert say(broker, monkeypatch, "list", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    assert say(broker, monkeypatch, "list") == 0
    assert capsys.readouterr().out.splitlines()[0] == "USER   MECHANISM      ITERATIONS"
    assert say(broker, monkeypatch, "delete", "alice", "--yes") == 0
    assert not can_sign_in(broker, "alice", "second", "SCRAM-SHA-512")
    assert say(broker, monkeypatch, "delete", "alice", "--yes") == 1
    assert "no such user 'alice'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("create", "bob"), ("create", "bob", "-i", "5")])
def test_a_user_without_a_proper_password_is_not_created(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert say(broker, monkeypatch, *words, typed="\n") == 1
