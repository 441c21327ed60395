"""SCRAM lets in who knows the password and nobody else, whatever the messages look like."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest

from barnabas.security.exchange import SignInFailed
from barnabas.security.scram import (
    ITERATIONS_MAX,
    MECHANISMS,
    SHA_256,
    Credential,
    Mechanism,
    ScramClient,
    ScramExchange,
    decoy,
)

SALT = b"salt of the earth"


def credential(mechanism: Mechanism, password: str = "pencil", iterations: int = 4096) -> Credential:
    return Credential.of(mechanism, mechanism.salted(password, SALT, iterations), SALT, iterations)


def exchange(mechanism: Mechanism = SHA_256, users: dict[str, Credential] | None = None) -> ScramExchange:
    known = {"user": credential(mechanism)} if users is None else users
    return ScramExchange(mechanism, known.get, nonce=b"n" * 24, secret=b"s")


def sign_in(server: ScramExchange, client: ScramClient) -> None:
    client.check(server.step(client.final(server.step(client.first()))))


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
@pytest.mark.parametrize("user", ["user", "a,b=c", "Zoë"])
def test_who_knows_the_password_comes_in(mechanism: Mechanism, user: str) -> None:
    server = exchange(mechanism, {user: credential(mechanism)})
    sign_in(server, ScramClient(mechanism, user, "pencil", nonce=b"c"))
    assert server.is_complete
    assert server.user == user


def test_the_example_of_rfc_7677_is_understood() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    known = Credential.of(SHA_256, SHA_256.salted("pencil", salt, 4096), salt, 4096)
    server = ScramExchange(SHA_256, {"user": known}.get, nonce=b"", secret=b"")
    server._nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    first = server.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = server.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_wrong_password_is_refused() -> None:
    server = exchange()
    with pytest.raises(SignInFailed, match="wrong user or password"):
        sign_in(server, ScramClient(SHA_256, "user", "pen", nonce=b"c"))
    assert not server.is_complete


def test_cve_2021_38153_an_unknown_user_goes_the_same_way_as_a_known_one() -> None:
    server = exchange()
    client = ScramClient(SHA_256, "nobody", "pencil", nonce=b"c")
    answer = server.step(client.first())
    assert answer.endswith(b",i=4096")
    with pytest.raises(SignInFailed, match="wrong user or password"):
        server.step(client.final(answer))
    assert decoy(SHA_256, "nobody", b"s") == decoy(SHA_256, "nobody", b"s")
    assert decoy(SHA_256, "nobody", b"s").salt != decoy(SHA_256, "other", b"s").salt


def test_the_keys_of_a_decoy_let_nobody_in() -> None:
    server = exchange(users={})
    server.step(b"n,,n=nobody,r=abc")
    for proof in (bytes(32), b"\xff" * 32, b""):
        text = b"c=biws,r=abc" + b64encode(b"n" * 24) + b",p=" + b64encode(proof)
        with pytest.raises(SignInFailed):
            server.step(text)


def test_cve_2024_56128_the_nonce_of_the_last_message_must_be_the_one_given() -> None:
    server = exchange()
    client = ScramClient(SHA_256, "user", "pencil", nonce=b"c")
    final = client.final(server.step(client.first()))
    with pytest.raises(SignInFailed):
        server.step(final.replace(b",r=", b",r=x"))


def test_a_replayed_exchange_is_refused() -> None:
    server = exchange()
    client = ScramClient(SHA_256, "user", "pencil", nonce=b"c")
    first = client.first()
    final = client.final(server.step(first))
    server.step(final)
    with pytest.raises(SignInFailed):
        server.step(final)
    again = ScramExchange(SHA_256, {"user": credential(SHA_256)}.get, nonce=b"m" * 24, secret=b"s")
    again.step(first)
    with pytest.raises(SignInFailed):
        again.step(final)


def test_channel_binding_is_checked() -> None:
    server = exchange()
    client = ScramClient(SHA_256, "user", "pencil", nonce=b"c")
    final = client.final(server.step(client.first()))
    with pytest.raises(SignInFailed):
        server.step(final.replace(b"c=biws", b"c=eSws"))
    with pytest.raises(SignInFailed):
        exchange().step(b"p=tls-unique,,n=user,r=abc")


def test_cve_2017_12610_nobody_signs_in_for_another() -> None:
    with pytest.raises(SignInFailed, match="authorization id"):
        exchange().step(b"n,a=admin,n=user,r=abc")
    assert exchange().step(b"n,a=user,n=user,r=abc")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\xff\xfe",
        b"n,,",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,r=abc,n=user",
        b"n,,n=,r=abc",
        b"n,,n=a=b,r=abc",
        b"n,,m=ext,n=user,r=abc",
        b"n,,n=user,r=abc,tokenauth=true",
        b"x,,n=user,r=abc",
        b"n,,n=user,r=" + b"a" * 10_000,
    ],
)
def test_a_malformed_first_message_is_refused(token: bytes) -> None:
    with pytest.raises(SignInFailed):
        exchange().step(token)


@pytest.mark.parametrize("token", [b"", b"c=biws", b"c=!,r=x,p=x", b"c=biws,r=abc,p=a", b"c=biws,r=abc,p====="])
def test_a_malformed_last_message_is_refused(token: bytes) -> None:
    server = exchange()
    server.step(b"n,,n=user,r=abc")
    with pytest.raises(SignInFailed):
        server.step(token)


@pytest.mark.parametrize("iterations", [1, 4095, ITERATIONS_MAX + 1, 999_999_999])
def test_cve_2026_10143_a_client_does_not_work_for_a_broker_that_asks_too_much(iterations: int) -> None:
    client = ScramClient(SHA_256, "user", "pencil", nonce=b"c")
    nonce = client.first().rpartition(b"r=")[2]
    with pytest.raises(SignInFailed, match="iterations"):
        client.final(b"r=" + nonce + b"more,s=c2FsdA==,i=%d" % iterations)


def test_a_client_does_not_trust_a_broker_that_does_not_know_the_password() -> None:
    client = ScramClient(SHA_256, "user", "pencil", nonce=b"c")
    client.final(exchange().step(client.first()))
    with pytest.raises(SignInFailed):
        client.check(b"v=" + b64encode(bytes(32)))
