"""What is secret is taken out of texts, and what is not stays."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.files.redaction import Redaction, secrets_in
from barnabas.cli.terminal.profiles import is_secret, shown

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" password="hush" user_bob=mute;'


@pytest.mark.parametrize(
    "text",
    [
        "password=hush",
        "sasl.password = hush",
        'opened ssl.key.password="hush" port=9092',
        '{"password": "hush"}',
        '{"line": "{\\"sasl.password\\": \\"hush hush\\"}"}',
        "client.secret: 'hush'",
        'token=hush"',
        f"sasl.jaas.config={JAAS}",
        "http://me:hush@there:8081/subjects",
        "authorization: Bearer hushhushhush",
        "sent Basic hushhush==",
        "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nhush, cut off",
        "schema.registry.basic.auth.user.info=me:hush",
    ],
)
def test_what_is_named_like_a_secret_goes(text: str) -> None:
    assert "hush" not in Redaction()(text)


@pytest.mark.parametrize(
    "text",
    [
        "orders: 3 partitions, offset 17, lag=5",
        '{"name": "ssl.keystore.password", "value": null, "is_sensitive": true}',
        '{"name": "delegation.token.max.lifetime.ms", "value": "604800000"}',
        "http://there:8081/subjects",
        "a password is asked for",
    ],
)
def test_what_is_not_stays_as_it_is(text: str) -> None:
    assert Redaction(["unrelated"])(text) == text


def test_a_secret_that_is_known_goes_wherever_it_stands() -> None:
    clean = Redaction(["hush", "hush-hush", "ab"])
    assert clean("he said hush-hush, then hush.") == "he said (secret), then (secret)."
    assert clean("about") == "about", "a password of two letters would take every word apart"


def test_json_stays_json() -> None:
    text = json.dumps({"password": 'hu"sh', "inner": json.dumps({"token": "hush"}), "count": 3})
    cleaned = json.loads(Redaction()(text))
    assert cleaned == {"password": "(secret)", "inner": '{"token": "(secret)"}', "count": 3}


def test_the_secrets_of_settings_are_known_in_their_parts() -> None:
    found = secrets_in(
        {
            "sasl.jaas.config": JAAS,
            "schema.registry.basic.auth.user.info": "me:whisper",
            "schema.registry.url": "http://me:murmur@there",
            "sasl.username": "ada",
            "ssl.key.password": "",
        }
    )
    assert {"hush", "mute", "whisper", "murmur"} <= set(found)
    assert "ada" not in found
    assert "" not in found


def test_which_settings_are_secret() -> None:
    names = ("sasl.password", "sasl.username", "ssl.keystore.key", "ssl.keystore.location", "ssl.key.password")
    assert [name for name in names if is_secret(name)] == ["sasl.password", "ssl.keystore.key", "ssl.key.password"]
    assert shown("schema.registry.url", "https://me:hush@there") == "https://me:(secret)@there"
    assert shown("bootstrap.servers", "a:1,b:2") == "a:1,b:2"
