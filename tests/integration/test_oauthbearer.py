"""OAUTHBEARER: whose tokens are believed, how long, and what clients of others hear who bring wrong ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from signed_clients import CLIENTS, WRONG_CLIENTS, WRONGLY, Refused
from talk import Raw, Talk, joined
from tokens import AUDIENCE, ISSUER, LISTENER, Issuer, is_let_in, message, sign_in, unsigned

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.frame import encode_request
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

FAR_FUTURE = 100_000_000_000  # in seconds: the year 5138
SASL = {
    **LISTENER,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
}
FILE = "barnabas.sasl.oauthbearer.jwks.file"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def broker(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    path = tmp_path_factory.mktemp("oauth") / "keys.json"
    path.write_bytes(issuer.key_set)
    with Broker(settings={**SASL, FILE: str(path)}) as running:
        yield running


@pytest.fixture
def moving(issuer: Issuer, tmp_path: Path) -> Iterator[Broker]:
    """One whose clock a test may move without harm to the others."""
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.key_set)
    with Broker(settings={**SASL, FILE: str(path)}) as running:
        yield running


@pytest.fixture
def at(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as talk:
        yield talk


@pytest.mark.parametrize("key_id", ["rsa", "ec"])
def test_a_signed_token_lets_its_bearer_in_until_it_expires(issuer: Issuer, at: Talk, key_id: str) -> None:
    answer = sign_in(at, issuer.token(key_id=key_id, seconds=100))
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert 90_000 < answer.session_lifetime_ms <= 100_000
    assert at.ask(MetadataRequest(topics=[])).cluster_id


def test_cve_2026_33557_an_unsigned_token_is_refused(issuer: Issuer, at: Talk) -> None:
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 1000}
    assert not is_let_in(at, unsigned({"alg": "none"}, claims))


@pytest.mark.parametrize("algorithm", ["none", "NONE", "nOnE", "", "HS256", "RS256", "ES256", "dir", None, 7])
def test_cve_2026_110985_a_token_without_a_true_signature_is_refused(at: Talk, algorithm: object) -> None:
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 1000}
    assert not is_let_in(at, unsigned({"alg": algorithm, "kid": "rsa"}, claims, b"x" * 256))


def test_a_public_key_used_as_a_shared_one_signs_nothing(issuer: Issuer, at: Talk) -> None:
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = issuer.keys["rsa"][1].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 1000}
    body = unsigned({"alg": "HS256", "kid": "rsa"}, claims).rpartition(".")[0]
    forged = hmac.new(public, body.encode(), hashlib.sha256).digest()
    assert not is_let_in(at, unsigned({"alg": "HS256", "kid": "rsa"}, claims, forged))


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://another.test"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"aud": ["x", "y"]},
        {"exp": 1},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": float("inf")},
        {"exp": True},
        {"nbf": FAR_FUTURE},
        {"iat": FAR_FUTURE},
        {"sub": None},
        {"sub": "  "},
        {"sub": 7},
        {"scope": 7},
    ],
    ids=str,
)
def test_a_token_that_says_the_wrong_thing_is_refused(issuer: Issuer, at: Talk, claims: dict[str, Any]) -> None:
    assert not is_let_in(at, issuer.token(**{"user": None if "sub" in claims else "alice", **claims}))


@pytest.mark.parametrize("claims", [{"aud": ["x", AUDIENCE]}, {"scope": "a b"}, {"scope": ["a"]}], ids=str)
def test_a_token_may_say_more(issuer: Issuer, at: Talk, claims: dict[str, Any]) -> None:
    assert is_let_in(at, issuer.token(**claims))


def test_a_token_of_another_issuers_key_is_refused(at: Talk) -> None:
    stranger = Issuer()
    assert not is_let_in(at, stranger.token())


def test_a_token_signed_by_another_key_than_it_names_is_refused(issuer: Issuer, at: Talk) -> None:
    assert not is_let_in(at, issuer.token(key_id="rsa", header={"kid": "ec"}))


def test_a_token_that_names_no_key_is_tried_with_all(issuer: Issuer, at: Talk) -> None:
    algorithm, private = issuer.keys["ec"]
    claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 100}
    assert is_let_in(at, jwt.encode(claims, private, algorithm=algorithm))


def test_a_changed_token_is_refused(issuer: Issuer, at: Talk) -> None:
    head, _, tail = issuer.token().split(".")
    body = issuer.token(user="root").split(".")[1]
    assert not is_let_in(at, f"{head}.{body}.{tail}")


def test_cve_2017_12610_nobody_acts_as_another_by_a_token(issuer: Issuer, at: Talk) -> None:
    answer = sign_in(at, issuer.token(), authorised_as="root")
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code


@pytest.mark.parametrize(
    "token",
    [b"", b"\x01", b"n,,\x01\x01", b"n,,\x01auth=Basic x\x01\x01", b"n,,\x01auth=Bearer \x01\x01", b"\xff" * 100,
     b"n,,\x01auth=Bearer a.b.c\x01auth=Bearer a.b.c\x01\x01", b"y,,\x01auth=Bearer a.b.c\x01\x01",
     b"n,,\x01auth=Bearer " + b"a" * 70_000 + b".b.c\x01\x01"],
    ids=range(9),
)  # fmt: skip
def test_what_is_no_message_of_the_mechanism_is_refused(at: Talk, token: bytes) -> None:
    at.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    answer = at.ask(SaslAuthenticateRequest(auth_bytes=token))
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
    at.until_closed()


def test_after_an_old_handshake_a_bare_token_is_taken(issuer: Issuer, broker: Broker) -> None:
    with Raw(broker.bootstrap_servers) as raw:
        raw.send(
            joined(encode_request(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 0, correlation_id=1, client_id=None))
        )
        raw.receive_frame()
        raw.send_frame(message(issuer.token()))
        assert raw.receive_frame() == b""


def test_a_session_ends_with_its_token_and_goes_on_with_a_new_one(issuer: Issuer, moving: Broker) -> None:
    with Talk(moving.bootstrap_servers) as short, Talk(moving.bootstrap_servers) as renewed:
        for talk in (short, renewed):
            assert sign_in(talk, issuer.token(seconds=60)).error_code == 0
        moving.clock.advance("10s")
        assert sign_in(renewed, issuer.token(seconds=600)).session_lifetime_ms > 500_000
        moving.clock.advance("60s")
        assert renewed.ask(MetadataRequest(topics=[])).cluster_id
        with pytest.raises(Exception, match=r"(?i)clos|gone"):
            short.ask(MetadataRequest(topics=[]))


def test_signing_in_again_as_another_is_refused(issuer: Issuer, moving: Broker) -> None:
    with Talk(moving.bootstrap_servers) as talk:
        far = issuer.token(seconds=100_000)
        assert sign_in(talk, far).error_code == 0
        moving.clock.advance("5s")
        answer = sign_in(talk, issuer.token(user="bob", seconds=100_000))
        assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
        talk.until_closed()


def test_neither_tokens_nor_reasons_are_told_but_the_log_knows_why(
    issuer: Issuer, at: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    token = issuer.token(aud="another")
    with caplog.at_level(logging.DEBUG, logger="barnabas"):
        assert not is_let_in(at, token)
    assert "for another audience" in caplog.text
    assert token.split(".")[2] not in caplog.text


# --- clients of others ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def open_to_all(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that makes topics as they are asked for."""
    path = tmp_path_factory.mktemp("oauth") / "keys.json"
    path.write_bytes(issuer.key_set)
    with Broker(settings={**SASL, FILE: str(path)}) as running:
        yield running


def proof(token: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "token": token}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_signs_in_by_its_token(open_to_all: Broker, issuer: Issuer, name: str, client: str) -> None:
    assert CLIENTS[client](open_to_all.bootstrap_servers, name, proof(issuer.token())) == b"hello"


@pytest.mark.parametrize("client", WRONG_CLIENTS)
def test_a_client_with_a_token_that_is_not_believed_is_refused(
    open_to_all: Broker, issuer: Issuer, name: str, client: str
) -> None:
    with pytest.raises(Refused):
        WRONGLY[client](open_to_all.bootstrap_servers, name, proof(issuer.token(aud="another")))
