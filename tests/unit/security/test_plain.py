"""PLAIN: users from the notation of Kafka's administrators, and nothing loaded by any name in it."""

from __future__ import annotations

import pytest

from barnabas.model.settings import InvalidSetting
from barnabas.security.exchange import SignInFailed
from barnabas.security.plain import LOGIN_MODULE, PlainExchange, parse_users

USERS = {"alice": "wonder land", "bob": 'qu"ote', "zoë": "ü"}


def test_users_are_read_as_kafka_writes_them() -> None:
    text = (
        f'{LOGIN_MODULE} required\n  username="admin" password="x"\n  user_alice="wonder land"\n'
        '  user_bob="qu\\"ote" user_carol=plain;'
    )
    assert parse_users(text) == {"alice": "wonder land", "bob": 'qu"ote', "carol": "plain"}
    assert parse_users(f"{LOGIN_MODULE} required user_a=b ;") == {"a": "b"}
    assert parse_users(f"{LOGIN_MODULE} required;") == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "com.sun.security.auth.module.JndiLoginModule required user.provider.url=ldap://evil;",
        f"{LOGIN_MODULE}",
        f"{LOGIN_MODULE} perhaps user_a=b;",
        f"{LOGIN_MODULE} perhaps;",
        f"{LOGIN_MODULE} required; user_a=b",
        f"{LOGIN_MODULE} required user_a=secret",
        f'{LOGIN_MODULE} required user_a="secret;',
        f"{LOGIN_MODULE} required secret;",
    ],
)
def test_cve_2023_25194_any_other_login_module_or_notation_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        parse_users(text)
    assert "secret" not in str(refused.value)
    assert "evil" not in str(refused.value)


@pytest.mark.parametrize(("user", "password"), USERS.items())
def test_who_knows_the_password_comes_in(user: str, password: str) -> None:
    for authorised_as in ("", user):
        exchange = PlainExchange(USERS)
        assert exchange.step(f"{authorised_as}\0{user}\0{password}".encode()) == b""
        assert exchange.is_complete
        assert exchange.user == user


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice",
        b"\0alice\0",
        b"\0\0wonder land",
        b"\0alice\0wonder",
        b"\0alice\0wonder land\0",
        b"\0nobody\0wonder land",
        b"\0nobody\0\0",
        b"\0alice\0\xff",
        b"\0ALICE\0wonder land",
    ],
)
def test_anything_else_is_refused(token: bytes) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(SignInFailed):
        exchange.step(token)
    assert not exchange.is_complete


def test_cve_2017_12610_nobody_signs_in_for_another_by_plain() -> None:
    with pytest.raises(SignInFailed, match="authorization id"):
        PlainExchange(USERS).step(b"bob\0alice\0wonder land")
