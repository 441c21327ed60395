"""Sign-in: every client by every mechanism, rightly and wrongly, and what a connection may do at which stage."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import Authority
from signed_clients import CLIENTS, WRONG_CLIENTS, WRONGLY, Refused
from talk import Raw, Talk

from barnabas.model import errors
from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import MECHANISMS, SHA_256, ScramClient
from barnabas.testing import Broker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion

PLAIN_USERS = f'{LOGIN_MODULE} required user_alice="alice-secret" user_bob="bob-secret";'
EVERY_MECHANISM = ("PLAIN", *MECHANISMS)
SALT = b"0123456789abcdef"
SESSION_MS = 60_000
FRAME_BYTES_MAX = 524_288


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    settings = {
        "listeners": ",".join(
            f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SHORT", "ONLY_SCRAM")
        ),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SHORT:SASL_PLAINTEXT,"
            "ONLY_SCRAM:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": ",".join(EVERY_MECHANISM),
        "plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.only_scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
    }
    with Broker(settings=settings) as running:
        with Talk(running.bootstrap_servers) as talk:
            for mechanism in MECHANISMS.values():
                for user in ("alice", "bob"):
                    salted = mechanism.salted(f"{user}-secret", SALT, 4096)
                    row = Upsertion(
                        name=user, mechanism=mechanism.number, iterations=4096, salt=SALT, salted_password=salted
                    )
                    (result,) = talk.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results
                    assert result.error_code == 0, result
        yield running


@pytest.fixture
def topic(broker: Broker, new_name: Callable[[], str]) -> str:
    with Talk(broker.bootstrap_servers) as talk:
        name = new_name()
        talk.create(name)
        return name


# --- clients of others ------------------------------------------------------------------------------------------------


def security(authority: Authority, protocol: str, mechanism: str, user: str, password: str) -> dict[str, str]:
    found = {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
    return found | ({"ssl.ca.location": str(authority.certificate)} if protocol == "SASL_SSL" else {})


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_signs_in(
    broker: Broker, topic: str, authority: Authority, client: str, protocol: str, mechanism: str
) -> None:
    proof = security(authority, protocol, mechanism, "alice", "alice-secret")
    assert CLIENTS[client](broker.address_of(protocol), topic, proof) == b"hello"


@pytest.mark.parametrize(("user", "password"), [("alice", "bob-secret"), ("mallory", "alice-secret")])
@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
@pytest.mark.parametrize("client", WRONG_CLIENTS)
def test_a_client_with_a_wrong_name_or_password_is_refused(
    broker: Broker, topic: str, authority: Authority, client: str, mechanism: str, user: str, password: str
) -> None:
    proof = security(authority, "SASL_PLAINTEXT", mechanism, user, password)
    with pytest.raises(Refused):
        WRONGLY[client](broker.address_of("SASL_PLAINTEXT"), topic, proof)


def test_a_client_that_does_not_sign_in_is_refused(broker: Broker, topic: str) -> None:
    with pytest.raises(Refused):
        CLIENTS["aiokafka"](broker.address_of("SASL_PLAINTEXT"), topic, {"security.protocol": "PLAINTEXT"})


# --- stages of a connection -------------------------------------------------------------------------------------------


def handshake(talk: Talk, mechanism: str, version: int = 1) -> int:
    code: int = talk.ask(SaslHandshakeRequest(mechanism=mechanism), version).error_code
    return code


def authenticate(talk: Talk, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    answer: SaslAuthenticateResponse = talk.ask(SaslAuthenticateRequest(auth_bytes=token), version)
    return answer


def plain(user: str, password: str, authorised_as: str = "") -> bytes:
    return f"{authorised_as}\0{user}\0{password}".encode()


def sign_in(talk: Talk, user: str = "alice") -> SaslAuthenticateResponse:
    assert handshake(talk, "PLAIN") == 0
    answer = authenticate(talk, plain(user, f"{user}-secret"))
    assert answer.error_code == 0, answer
    return answer


@pytest.fixture
def at(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.address_of("SASL_PLAINTEXT")) as talk:
        yield talk


def test_before_sign_in_versions_may_be_asked_and_nothing_else(broker: Broker, at: Talk) -> None:
    assert at.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1")).error_code == 0
    at.tell(MetadataRequest(topics=None))
    at.until_closed()


def test_after_sign_in_everything_may_be_asked(at: Talk) -> None:
    assert sign_in(at).session_lifetime_ms == 0
    assert at.ask(MetadataRequest(topics=None)).brokers
    assert handshake(at, "PLAIN") == errors.ILLEGAL_SASL_STATE.code  # nobody asked for it
    assert authenticate(at, b"").error_code == errors.ILLEGAL_SASL_STATE.code
    assert at.is_open


@pytest.mark.parametrize("version", SaslAuthenticateRequest.versions)
def test_every_version_of_the_step_is_served(at: Talk, version: int) -> None:
    handshake(at, "SCRAM-SHA-256")
    client = ScramClient(SHA_256, "bob", "bob-secret", nonce=b"c")
    challenge = authenticate(at, client.first(), version)
    client.check(authenticate(at, client.final(challenge.auth_bytes), version).auth_bytes)
    assert at.ask(MetadataRequest(topics=None)).brokers


def test_a_failure_is_told_after_a_moment_and_ends_the_connection(at: Talk) -> None:
    handshake(at, "PLAIN")
    started = time.monotonic()
    answer = authenticate(at, plain("alice", "guess"))
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
    assert time.monotonic() - started >= 0.09
    at.until_closed()


def test_a_mechanism_that_is_not_offered_is_refused_with_those_that_are(broker: Broker) -> None:
    with Talk(broker.address_of("ONLY_SCRAM")) as talk:
        answer = talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == errors.UNSUPPORTED_SASL_MECHANISM.code
        assert answer.mechanisms == ["SCRAM-SHA-512"]
        talk.until_closed()


def test_a_step_without_a_handshake_is_refused(at: Talk) -> None:
    assert authenticate(at, plain("alice", "alice-secret")).error_code == errors.ILLEGAL_SASL_STATE.code
    at.until_closed()


def test_a_second_handshake_is_refused(at: Talk) -> None:
    assert handshake(at, "PLAIN") == 0
    assert handshake(at, "PLAIN") == errors.ILLEGAL_SASL_STATE.code
    at.until_closed()


@pytest.mark.parametrize(("protocol_version", "api"), [(7, 17), (3, 36)])
def test_an_unknown_version_of_sign_in_ends_the_connection(broker: Broker, protocol_version: int, api: int) -> None:
    with Raw(broker.address_of("SASL_PLAINTEXT")) as raw:
        raw.send_frame(struct.pack(">hhih", api, protocol_version, 1, -1) + b"\0\0\0\0\0\0")
        assert raw.is_closed()


def test_after_an_old_handshake_bare_tokens_are_taken(broker: Broker) -> None:
    with Raw(broker.address_of("SASL_PLAINTEXT")) as raw:
        raw.send_frame(struct.pack(">hhihh", 17, 0, 1, -1, 13) + b"SCRAM-SHA-256")
        assert raw.receive_frame()[4:6] == b"\0\0"
        client = ScramClient(SHA_256, "alice", "alice-secret", nonce=b"c")
        raw.send_frame(client.first())
        raw.send_frame(client.final(raw.receive_frame()))
        client.check(raw.receive_frame())
        raw.send_frame(struct.pack(">hhih", 3, 1, 2, -1) + b"\xff\xff\xff\xff")
        assert raw.receive_frame()[:4] == b"\0\0\0\2"


def test_a_wrong_bare_token_ends_the_connection(broker: Broker) -> None:
    with Raw(broker.address_of("SASL_PLAINTEXT")) as raw:
        raw.send_frame(struct.pack(">hhihh", 17, 0, 1, -1, 5) + b"PLAIN")
        raw.receive_frame()
        raw.send_frame(plain("alice", "guess"))
        assert raw.is_closed()


def test_cve_2022_34917_large_frames_are_not_read_before_sign_in(broker: Broker) -> None:
    with Raw(broker.address_of("SASL_PLAINTEXT")) as raw:
        raw.send(struct.pack(">i", FRAME_BYTES_MAX + 1))
        assert raw.is_closed()
    with Raw(broker.address_of("SASL_PLAINTEXT")) as raw:
        raw.send_frame(struct.pack(">hhihh", 17, 1, 1, -1, 5) + b"PLAIN")
        raw.receive_frame()
        raw.send_frame(struct.pack(">hhihi", 36, 0, 2, -1, FRAME_BYTES_MAX - 16) + b"x" * (FRAME_BYTES_MAX - 16))
        assert raw.receive_frame()[4:6] == struct.pack(">h", errors.SASL_AUTHENTICATION_FAILED.code)


def test_after_sign_in_large_frames_are_read(at: Talk, broker: Broker, topic: str) -> None:
    sign_in(at)
    names = [MetadataRequest.MetadataRequestTopic(name=f"{number:0>200}") for number in range(4000)]
    assert len(at.ask(MetadataRequest(topics=names, allow_auto_topic_creation=False)).topics) == 4000


def test_cve_2017_12610_nobody_signs_in_for_another(at: Talk) -> None:
    handshake(at, "PLAIN")
    answer = authenticate(at, plain("alice", "alice-secret", authorised_as="bob"))
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
    at.until_closed()


# --- sessions that end ------------------------------------------------------------------------------------------------


@pytest.fixture
def short(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.address_of("SHORT")) as talk:
        yield talk


def test_a_client_is_told_how_long_its_session_lasts_and_is_cut_off_after_it(broker: Broker, short: Talk) -> None:
    assert sign_in(short).session_lifetime_ms == SESSION_MS
    broker.clock.advance(SESSION_MS - 1000)
    assert short.ask(MetadataRequest(topics=[])).brokers
    broker.clock.advance(2000)
    short.tell(MetadataRequest(topics=[]))
    short.until_closed()


def test_a_client_that_signs_in_again_goes_on(broker: Broker, short: Talk) -> None:
    sign_in(short)
    for _ in range(3):
        broker.clock.advance(SESSION_MS - 1000)
        assert sign_in(short).session_lifetime_ms == SESSION_MS
        assert short.ask(MetadataRequest(topics=[])).brokers


def test_signing_in_again_as_another_is_refused(broker: Broker, short: Talk) -> None:
    sign_in(short)
    broker.clock.advance(2000)
    handshake(short, "PLAIN")
    answer = authenticate(short, plain("bob", "bob-secret"))
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
    assert answer.error_message is not None
    assert "cannot take it over" in answer.error_message
    short.until_closed()


def test_signing_in_again_by_another_mechanism_is_refused(broker: Broker, short: Talk) -> None:
    sign_in(short)
    broker.clock.advance(2000)
    assert handshake(short, "SCRAM-SHA-256") == errors.UNSUPPORTED_SASL_MECHANISM.code
    short.until_closed()


def test_nothing_else_may_be_asked_while_signing_in_again(broker: Broker, short: Talk) -> None:
    sign_in(short)
    broker.clock.advance(2000)
    handshake(short, "PLAIN")
    short.tell(MetadataRequest(topics=[]))
    short.until_closed()


# --- users ------------------------------------------------------------------------------------------------------------


def test_users_are_described_without_anything_secret(talk_plainly: Talk) -> None:
    found = talk_plainly.ask(DescribeUserScramCredentialsRequest(users=None))
    assert {row.user for row in found.results} >= {"alice", "bob"}
    rows = DescribeUserScramCredentialsRequest.UserName
    asked = [rows(name="alice"), rows(name="nobody"), rows(name="bob"), rows(name="bob")]
    results = talk_plainly.ask(DescribeUserScramCredentialsRequest(users=asked)).results
    assert [(info.mechanism, info.iterations) for info in results[0].credential_infos] == [(1, 4096), (2, 4096)]
    assert [row.error_code for row in results] == [
        0,
        errors.RESOURCE_NOT_FOUND.code,
        errors.DUPLICATE_RESOURCE.code,
    ]


@pytest.fixture
def talk_plainly(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as talk:
        yield talk


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (Upsertion(name="", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"), 93),
        (Upsertion(name="x", mechanism=3, iterations=4096, salt=b"s", salted_password=b"p"), 33),
        (Upsertion(name="x", mechanism=1, iterations=4095, salt=b"s", salted_password=b"p"), 93),
        (Upsertion(name="x", mechanism=1, iterations=16385, salt=b"s", salted_password=b"p"), 93),
        (Upsertion(name="x", mechanism=1, iterations=4096, salt=b"", salted_password=b"p"), 93),
    ],
)
def test_cve_2026_10143_a_credential_outside_the_bounds_is_refused(
    talk_plainly: Talk, row: AlterUserScramCredentialsRequest.ScramCredentialUpsertion, error: int
) -> None:
    (result,) = talk_plainly.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results
    assert result.error_code == error


def test_a_removed_user_cannot_sign_in_any_more(broker: Broker, talk_plainly: Talk) -> None:
    salted = SHA_256.salted("gone", SALT, 4096)
    row = Upsertion(name="carol", mechanism=1, iterations=4096, salt=SALT, salted_password=salted)
    assert talk_plainly.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results[0].error_code == 0

    def try_it() -> int:
        with Talk(broker.address_of("SASL_PLAINTEXT")) as talk:
            handshake(talk, "SCRAM-SHA-256")
            client = ScramClient(SHA_256, "carol", "gone", nonce=b"c")
            answer = authenticate(talk, client.first())
            return authenticate(talk, client.final(answer.auth_bytes)).error_code

    assert try_it() == 0
    removal = [Deletion(name="carol", mechanism=1)]
    assert talk_plainly.ask(AlterUserScramCredentialsRequest(deletions=removal)).results[0].error_code == 0
    assert try_it() == errors.SASL_AUTHENTICATION_FAILED.code
    again = talk_plainly.ask(AlterUserScramCredentialsRequest(deletions=removal)).results[0]
    assert again.error_code == errors.RESOURCE_NOT_FOUND.code


def test_a_user_named_twice_is_not_changed(talk_plainly: Talk) -> None:
    row = Upsertion(name="twice", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p")
    (result,) = talk_plainly.ask(AlterUserScramCredentialsRequest(upsertions=[row, row])).results
    assert result.error_code == errors.DUPLICATE_RESOURCE.code
    found = talk_plainly.ask(DescribeUserScramCredentialsRequest(users=None))
    assert "twice" not in {entry.user for entry in found.results}


def test_users_survive_a_restart(tmp_path: Path) -> None:
    for expected in ([], ["dora"]):
        with Broker(data_dir=tmp_path / "data") as running, Talk(running.bootstrap_servers) as talk:
            found = talk.ask(DescribeUserScramCredentialsRequest(users=None)).results
            assert [row.user for row in found] == expected
            row = Upsertion(name="dora", mechanism=2, iterations=4096, salt=b"s", salted_password=b"p")
            assert talk.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results[0].error_code == 0
