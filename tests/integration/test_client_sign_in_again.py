"""Sessions that end: our own clients sign in again where they are, lose and reorder nothing, or say why not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from talk import Talk
from tokens import AUDIENCE, ISSUER, Issuer

from barnabas.client.consumer import Consumer
from barnabas.client.errors import IssuerUnreachable, NoToken
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import SHA_256, SHA_512, Mechanism
from barnabas.testing import Broker
from barnabas.transport.links import Links
from barnabas.transport.sign_in import Credentials
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.metadata import MetadataRequest

SESSION_MS = 1200
LIVES = 3
SECONDS_MAX = 30.0
SALT = b"0123456789abcdef"
LISTENER = "SASL_PLAINTEXT"
SCRAM = {"SCRAM-SHA-256": SHA_256, "SCRAM-SHA-512": SHA_512}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def broker(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    keys = Path(tmp_path_factory.mktemp("keys")) / "keys.json"
    keys.write_bytes(issuer.key_set)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", "OAUTHBEARER", *SCRAM)),
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_alice=alice-secret;",
        "barnabas.sasl.oauthbearer.jwks.file": str(keys),
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    with Broker(settings=settings) as running:
        for mechanism in SCRAM.values():
            set_password(running, mechanism, "alice-secret")
        yield running


def set_password(broker: Broker, mechanism: Mechanism, password: str) -> None:
    row = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="alice",
        mechanism=mechanism.number,
        iterations=4096,
        salt=SALT,
        salted_password=mechanism.salted(password, SALT, 4096),
    )
    with Talk(broker.bootstrap_servers) as talk:
        assert talk.ask(AlterUserScramCredentialsRequest(upsertions=[row])).results[0].error_code == 0


def told(broker: Broker, mechanism: str, **more: Any) -> dict[str, Any]:
    login = {} if mechanism == "OAUTHBEARER" else {"sasl.username": "alice", "sasl.password": "alice-secret"}
    return {
        "bootstrap.servers": broker.address_of(LISTENER),
        "security.protocol": LISTENER,
        "sasl.mechanism": mechanism,
        **login,
        **more,
    }


def connections(broker: Broker) -> int:
    return next(each for each in broker.node.listeners if each.name == LISTENER).accepted_count


def sign_ins(broker: Broker) -> int:
    return sum(
        count
        for (name, _, is_success), count in broker.node.observed.sign_ins.items()
        if is_success and name == LISTENER
    )


def create(broker: Broker, name: str) -> str:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
    return name


async def write_and_read(
    topic: str, acks: str, login: dict[str, Any], warm: asyncio.Barrier, end: asyncio.Event
) -> int:
    """Records leave all the while, several requests in flight, and are read as they come: each once, in order."""
    producer_settings = ProducerSettings.of({**login, "acks": acks, "linger.ms": 0, "batch.size": 64})
    member = {
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 50,
        "auto.commit.interval.ms": 100,
        "fetch.max.wait.ms": 300,
    }
    seen: list[bytes | None] = []
    written = 0
    async with Producer(producer_settings) as producer, Consumer(ConsumerSettings.of({**login, **member})) as consumer:
        await consumer.subscribe([topic])

        async def write() -> None:
            nonlocal written
            while not end.is_set():
                batch = [await producer.send_soon(topic, b"%d" % (written + index)) for index in range(20)]
                written += len(batch)
                await asyncio.gather(*batch)
                await asyncio.sleep(0.002)

        async def read() -> None:
            while not writing.done() or len(seen) < written:
                seen.extend(record.value for record in await consumer.poll(timeout_ms=100))

        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(write())
            tasks.create_task(read())
            while not seen:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # for the first commits and heartbeats
            await warm.wait()
    assert seen == [b"%d" % number for number in range(written)]
    return written


def test_writing_and_reading_go_on_over_many_sessions_on_the_same_connections(
    broker: Broker, issuer: Issuer, new_name: Callable[[], str]
) -> None:
    tokens: list[str] = []

    def token() -> str:
        tokens.append(issuer.token(seconds=60, jti=str(len(tokens))))
        return tokens[-1]

    pairs = [
        (create(broker, new_name()), "1", told(broker, "PLAIN")),
        (create(broker, new_name()), "all", told(broker, "SCRAM-SHA-256")),
        (create(broker, new_name()), "all", told(broker, "OAUTHBEARER", sasl_oauthbearer_token_provider=token)),
        (create(broker, new_name()), "0", told(broker, "SCRAM-SHA-512")),
    ]

    before = connections(broker)

    async def work() -> None:
        warm, end = asyncio.Barrier(len(pairs) + 1), asyncio.Event()
        async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
            for topic, acks, login in pairs:
                group.create_task(write_and_read(topic, acks, login, warm, end))
            await warm.wait()
            dialled, signed, given = connections(broker), sign_ins(broker), len(tokens)
            await asyncio.sleep(LIVES * SESSION_MS / 1000)
            assert connections(broker) == dialled, "a connection was lost"
            assert sign_ins(broker) >= signed + (LIVES - 1) * (dialled - before)
            assert len(set(tokens)) >= given + LIVES - 1
            end.set()

    asyncio.run(work())


def test_a_client_that_was_stopped_beyond_its_session_signs_in_before_it_asks(broker: Broker, name: str) -> None:
    create(broker, name)

    async def work() -> None:
        async with Producer(ProducerSettings.of(told(broker, "PLAIN"))) as producer:
            await producer.send(name, b"x")
            dialled = connections(broker)
            time.sleep(1.2 * SESSION_MS / 1000)  # noqa: ASYNC251  # the loop is what stands still
            assert (await producer.send(name, b"x")).offset == 1
            assert connections(broker) == dialled

    asyncio.run(work())


@pytest.mark.parametrize("acks", ["all", "0"])
def test_a_password_that_is_not_good_any_more_is_said_to_be_wrong(broker: Broker, name: str, acks: str) -> None:
    create(broker, name)

    async def work() -> None:
        async with Producer(ProducerSettings.of(told(broker, "SCRAM-SHA-512", acks=acks))) as producer:
            await producer.send(name, b"x")
            await asyncio.to_thread(set_password, broker, SHA_512, "another")
            async with asyncio.timeout(SECONDS_MAX):
                while True:
                    await producer.send(name, b"x")

    try:
        with pytest.raises(ApiError) as refused:
            asyncio.run(work())
    finally:
        set_password(broker, SHA_512, "alice-secret")
    assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED
    assert broker.address_of(LISTENER) in str(refused.value)


def test_a_reader_is_told_too(broker: Broker, name: str) -> None:
    create(broker, name)

    async def work() -> None:
        member = {"group.id": name, "default.api.timeout.ms": 5_000}
        async with Consumer(ConsumerSettings.of(told(broker, "SCRAM-SHA-512", **member))) as consumer:
            await consumer.subscribe([name])
            await consumer.poll(timeout_ms=500)
            await asyncio.to_thread(set_password, broker, SHA_512, "another")
            async with asyncio.timeout(SECONDS_MAX):
                while True:
                    await consumer.poll(timeout_ms=500)

    try:
        with pytest.raises(ApiError) as refused:
            asyncio.run(work())
    finally:
        set_password(broker, SHA_512, "alice-secret")
    assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("wrong", ["a token of another audience", "no token", "an issuer that is away"])
def test_tokens_that_are_not_good_any_more(broker: Broker, issuer: Issuer, name: str, wrong: str) -> None:
    """A bad one is an error, a missing one too; an issuer that is away is asked again, and nothing is lost."""
    create(broker, name)
    asked = 0

    def token() -> str:
        nonlocal asked
        asked += 1
        if asked <= 2 or wrong == "an issuer that is away":  # the producer has two connections
            if asked in (3, 4):
                raise IssuerUnreachable("the issuer is away")
            return issuer.token()
        if wrong == "no token":
            raise NoToken("the issuer says no")
        return issuer.token(aud="another")

    async def work() -> int:
        written = 0
        async with Producer(
            ProducerSettings.of(told(broker, "OAUTHBEARER", sasl_oauthbearer_token_provider=token))
        ) as producer:
            end = time.monotonic() + 3 * SESSION_MS / 1000
            while time.monotonic() < end:
                written = (await producer.send(name, b"x")).offset + 1
        return written

    if wrong == "an issuer that is away":
        assert asyncio.run(work())
        return
    with pytest.raises(BarnabasError) as refused:
        asyncio.run(work())
    if wrong == "no token":
        assert isinstance(refused.value, NoToken)
    else:
        assert isinstance(refused.value, ApiError)
        assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED


def test_links_between_nodes_sign_in_again_too(broker: Broker) -> None:
    async def work() -> None:
        async def prove() -> Credentials:
            return Credentials("PLAIN", "alice", "alice-secret")

        links = Links(client_id="test", chance=lambda limit: limit // 2, prove=prove)
        host, _, port = broker.address_of(LISTENER).rpartition(":")
        links.learn(7, host, int(port))
        dialled, signed = connections(broker), sign_ins(broker)
        try:
            end = time.monotonic() + 2.5 * SESSION_MS / 1000
            while time.monotonic() < end:
                await links.send(7, MetadataRequest(topics=[]))
                await asyncio.sleep(0.01)
        finally:
            await links.close()
        assert (connections(broker) - dialled, sign_ins(broker) - signed) == (1, 3)

    asyncio.run(work())
