"""Sessions that end at Apache Kafka (KIP-368): our clients sign in again by each mechanism where they are."""

from __future__ import annotations

import asyncio
import json
import math
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from bench.probe import free_port
from kafka_nodes import KafkaNode

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.plain import LOGIN_MODULE
from barnabas.security.scram import MECHANISMS
from barnabas.transport.channel import Channel
from barnabas.world.real import real_world

SESSION_MS = 1500
LIVES = 4
SECONDS_MAX = 120.0
LISTENER = "SASL_PLAINTEXT"
SECURITY = "org.apache.kafka.common.security"
LOGINS = {
    "plain": f"{LOGIN_MODULE} required user_alice=alice-secret;",
    "scram-sha-256": f"{SECURITY}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{SECURITY}.scram.ScramLoginModule required;",
    "oauthbearer": f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=broker;",
}

pytestmark = [pytest.mark.java, pytest.mark.slow]


class SignedNode(KafkaNode):
    """One that has a listener for clients that sign in, for a short while."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.signed_port = free_port()

    def _with_quorum(self) -> dict[str, str]:
        own = super()._with_quorum()
        for name in ("listeners", "advertised.listeners"):
            own[name] += f",{LISTENER}://127.0.0.1:{self.signed_port}"
        own["listener.security.protocol.map"] += f",{LISTENER}:{LISTENER}"
        own["sasl.enabled.mechanisms"] = ",".join(name.upper() for name in LOGINS)
        own["connections.max.reauth.ms"] = str(SESSION_MS)
        for name, login in LOGINS.items():
            own[f"listener.name.{LISTENER.lower()}.{name}.sasl.jaas.config"] = login
        return own


def token() -> str:
    """Kafka's brokers believe unsigned ones if nobody tells them otherwise."""
    claims = {"sub": "alice", "iat": int(time.time()) - 1, "exp": int(time.time()) + 60}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


async def write_and_read(servers: str, mechanism: str, dialled: list[int]) -> int:
    login: dict[str, Any] = {
        "bootstrap.servers": servers,
        "security.protocol": LISTENER,
        "sasl.mechanism": mechanism,
        **({"sasl.oauthbearer.token.provider": token} if mechanism == "OAUTHBEARER" else {}),
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
    }
    member = {"group.id": mechanism, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 100}
    topic, written = f"signed-{mechanism.lower()}", 0
    seen: list[bytes | None] = []
    async with (
        Producer(ProducerSettings.of({**login, "batch.size": 64})) as producer,
        Consumer(ConsumerSettings.of({**login, **member})) as consumer,
    ):
        await producer.cluster.retrying(lambda: producer.cluster.topic(topic))
        await consumer.subscribe([topic])
        begun, end, connections = time.monotonic(), math.inf, 0
        while time.monotonic() < end or len(seen) < written:
            if end == math.inf and seen and time.monotonic() > begun + SESSION_MS / 2000:  # all lanes are in use now
                end, connections = time.monotonic() + LIVES * SESSION_MS / 1000, len(dialled)
            if time.monotonic() < end:
                sent = [await producer.send_soon(topic, b"%d" % (written + index)) for index in range(20)]
                written += len(sent)
                await asyncio.gather(*sent)
            seen += [record.value for record in await consumer.poll(timeout_ms=20)]
    assert len(dialled) == connections, "a connection was lost"
    assert seen == [b"%d" % number for number in range(written)]
    return written


@pytest.mark.parametrize("version", ["4.3", "3.9"])
def test_our_clients_sign_in_again_to_apache_kafka(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled: list[int] = []
    connect = Channel.connect

    async def counted(host: str, port: int, **options: Any) -> Channel:
        dialled.append(port)
        return await connect(host, port, **options)

    async def work(node: SignedNode) -> None:
        servers = f"127.0.0.1:{node.signed_port}"
        async with Admin(Settings(bootstrap_servers=(node.bootstrap,))) as admin:
            world = real_world()
            for mechanism in MECHANISMS.values():
                await admin.set_password(world, "alice", "alice-secret", mechanism, iterations=4096)
            await world.workers.close()
            await admin.create_topics([NewTopic(f"signed-{name}", partition_count=1) for name in LOGINS])
        monkeypatch.setattr(Channel, "connect", counted)
        async with asyncio.timeout(SECONDS_MAX):
            for name in LOGINS:
                dialled.clear()
                written = await write_and_read(servers, name.upper(), dialled)
                assert written > 100
                print(f"Apache Kafka {node.version}: {name}: {written} records over {len(dialled)} connections")

    with SignedNode(version) as node:
        asyncio.run(work(node))


def test_a_password_that_apache_kafka_does_not_take_any_more_is_said_to_be_wrong() -> None:
    async def work(node: SignedNode) -> None:
        scram = MECHANISMS["SCRAM-SHA-512"]
        world = real_world()
        async with Admin(Settings(bootstrap_servers=(node.bootstrap,))) as admin:
            await admin.set_password(world, "alice", "alice-secret", scram, iterations=4096)
            await admin.create_topics([NewTopic("signed", partition_count=1)])
            settings = ProducerSettings(
                bootstrap_servers=(f"127.0.0.1:{node.signed_port}",),
                security_protocol=LISTENER,
                sasl_mechanism=scram.name,
                sasl_username="alice",
                sasl_password="alice-secret",
            )
            async with asyncio.timeout(SECONDS_MAX), Producer(settings) as producer:
                await producer.send("signed", b"x")
                await admin.set_password(world, "alice", "another", scram, iterations=4096)
                while True:
                    await producer.send("signed", b"x")

    with SignedNode("4.3") as node, pytest.raises(ApiError) as refused:
        asyncio.run(work(node))
    assert refused.value.error is errors.SASL_AUTHENTICATION_FAILED
