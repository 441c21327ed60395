"""Sessions that end: a client of others signs in again on its connection, in good time, and nothing is lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from talk import Talk
from tokens import AUDIENCE, ISSUER, Issuer

from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import SHA_512
from barnabas.testing import Broker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

SESSION_MS = 2000
SECONDS = 6.0
SALT = b"0123456789abcdef"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_librdkafka_signs_in_again_while_it_writes(tmp_path: Path, name: str, mechanism: str) -> None:
    issuer = Issuer()
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.key_set)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": mechanism,
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_alice=alice-secret;",
        "barnabas.sasl.oauthbearer.jwks.file": str(keys),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    client: dict[str, Any] = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "linger.ms": 0}
    if mechanism == "OAUTHBEARER":
        client["oauth_cb"] = lambda _: (issuer.token(seconds=60), time.time() + 60)
    else:
        client |= {"sasl.username": "alice", "sasl.password": "alice-secret"}
    with Broker(settings=settings) as running:
        with Talk(running.bootstrap_servers) as talk:
            talk.create(name)
            row = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                name="alice",
                mechanism=SHA_512.number,
                iterations=4096,
                salt=SALT,
                salted_password=SHA_512.salted("alice-secret", SALT, 4096),
            )
            talk.ask(AlterUserScramCredentialsRequest(upsertions=[row]))
        wrong: list[object] = []
        written = 0
        address = running.address_of("SASL_PLAINTEXT")
        producer = Producer({"bootstrap.servers": address, "error_cb": wrong.append, "log_level": 0, **client})
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            producer.produce(name, b"x", on_delivery=lambda error, _: wrong.append(error) if error else None)
            written += 1
            producer.flush(10)
            producer.poll(0.02)
        assert wrong == []
        times = running.node.observed.sign_ins["SASL_PLAINTEXT", mechanism, True]
        connections = next(each for each in running.node.listeners if each.name == "SASL_PLAINTEXT").accepted_count
        assert times >= connections + 2, "it has signed in again where it was"
        with Talk(running.bootstrap_servers) as talk:
            assert len(talk.read(name)) == written
