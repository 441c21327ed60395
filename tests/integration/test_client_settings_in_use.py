"""Settings of the clients that must be seen to do something, against a broker."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from certificates import Authority
from talk import Talk

from barnabas import Admin, Consumer, ConsumerSettings, Producer, ProducerSettings, Settings
from barnabas.client.cluster.cluster import Cluster
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.batch_reader import BatchReader
from barnabas.testing import Broker

ELSEWHERE = "127.0.0.2"  # an address of this machine that is in no certificate


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Broker]:
    settings = {
        "listeners": f"SSL://{ELSEWHERE}:0",
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
        "ssl.enabled.protocols": "TLSv1.3",
    }
    with Broker(settings=settings) as broker:
        yield broker


def topics(told: dict[str, Any]) -> list[str]:
    async def ask() -> list[str]:
        async with Admin(Settings.of({"security.protocol": "SSL", "default.api.timeout.ms": 2_000, **told})) as admin:
            return [topic.name for topic in await admin.cluster.all_topics()]

    return asyncio.run(ask())


def test_the_name_in_a_certificate_is_compared_unless_nobody_wants_that(secured: Broker, authority: Authority) -> None:
    own = authority.issue("/CN=carol")
    told = {
        "bootstrap.servers": secured.address_of("SSL"),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.keystore.location": str(own.store),
    }
    with pytest.raises(BarnabasError, match=r"(?i)certificate"):
        topics(told)
    with pytest.raises(BarnabasError, match=r"(?i)certificate"):
        topics({**told, "ssl.endpoint.identification.algorithm": "https"})
    assert topics({**told, "ssl.endpoint.identification.algorithm": ""}) == []


def test_keys_and_certificates_may_be_texts_and_versions_chosen(secured: Broker, authority: Authority) -> None:
    own = authority.issue("/CN=carol")
    told = {
        "bootstrap.servers": secured.address_of("SSL"),
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.certificates": authority.certificate.read_text(),
        "ssl.keystore.key": own.key.read_text(),
        "ssl.keystore.certificate.chain": own.chain,
    }
    assert topics(told) == topics({**told, "ssl.enabled.protocols": "TLSv1.3"}) == []
    with pytest.raises(BarnabasError):
        topics({**told, "ssl.enabled.protocols": "TLSv1.2"})
    assert "PRIVATE KEY" not in repr(Settings.of(told))


WORDS = b" ".join(b"%d" % (number * number) for number in range(4_000))


@pytest.mark.parametrize(("codec", "fast", "thorough"), [("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -50, 19)])
@pytest.mark.parametrize("is_arrow", [False, True])
def test_a_higher_level_makes_smaller_batches(
    shared_broker: Broker, talk: Talk, name: str, codec: str, fast: int, thorough: int, is_arrow: bool
) -> None:
    talk.create(name)
    servers = {"bootstrap.servers": shared_broker.bootstrap_servers}

    async def work() -> list[int]:
        for level in (fast, thorough):
            told = {**servers, "compression.type": codec, f"compression.{codec}.level": str(level)}
            async with Producer(ProducerSettings.of(told)) as producer:
                if is_arrow:
                    await producer.send_arrow(pa.table({"value": [WORDS]}), name)
                else:
                    await producer.send(name, WORDS)
        async with Cluster(Settings.of(servers)) as cluster:
            reader = BatchReader(cluster, {TopicPartition(name, 0): 0}, until_end=True)
            return [batch.header.size_bytes async for batch in reader.read()]

    large, small = asyncio.run(work())
    assert small < large


def consumer_settings(broker: Broker, name: str, **more: Any) -> ConsumerSettings:
    return ConsumerSettings(bootstrap_servers=(broker.bootstrap_servers,), group_id=name, **more)


def test_the_broker_shares_partitions_as_the_member_asks(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name)

    async def work(assignor: str) -> str:
        group = f"{name}-{assignor}"
        told = consumer_settings(shared_broker, group, group_protocol="consumer", group_remote_assignor=assignor)
        async with Consumer(told) as consumer, Admin(Settings(bootstrap_servers=told.bootstrap_servers)) as admin:
            await consumer.subscribe([name])
            while not consumer.assignment:
                await consumer.poll(timeout_ms=20)
            return (await admin.describe_group(group)).assignor

    assert [asyncio.run(work(assignor)) for assignor in ("range", "uniform")] == ["range", "uniform"]


def test_a_pattern_sees_the_clusters_own_topics_if_it_may(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name)

    async def work(**more: bool) -> set[str]:
        told = consumer_settings(shared_broker, f"{name}-{more}", **more)
        async with Consumer(told) as consumer:
            await consumer.subscribe(re.compile(f"__consumer_offsets|{name}"))
            while not consumer.assignment:
                await consumer.poll(timeout_ms=20)
            return {place.topic for place in consumer.assignment}

    asyncio.run(work())  # after which there are stored offsets
    assert asyncio.run(work()) == {name}
    assert asyncio.run(work(exclude_internal_topics=False)) == {name, "__consumer_offsets"}
