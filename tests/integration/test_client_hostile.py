"""A broker that answers nonsense, lies, vanishes or is another one: a typed error in time, or a client that goes on."""

from __future__ import annotations

import asyncio
import os
import random
import struct
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tampering_proxy import Asked, Cut, Tamper, TamperingProxy, honest

from barnabas import Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, TopicPartition
from barnabas.model.errors import BarnabasError, CorruptBatch
from barnabas.testing import Broker, BrokerProcess
from barnabas.wire.api import ApiKey
from barnabas.wire.compression import Codec
from barnabas.wire.frame import encode_response
from barnabas.wire.messages import response_of
from barnabas.wire.records import encode_batch
from barnabas.world.real import free_ports

SECONDS_MAX = 60.0
CALL_MS = 1_500  # what a client is told to bear
GRACE_SECONDS = 6.0  # on a busy machine
MEMORY_BYTES_MAX = 64 << 20
BOMB_BYTES = 512 << 20
TOPIC = "orders"
SEED = int(os.environ.get("BARNABAS_TEST_SEED", "0"))

IMPATIENT: dict[str, Any] = {
    "request_timeout_ms": 500,
    "default_api_timeout_ms": CALL_MS,
    "socket_connection_setup_timeout_ms": 500,
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
}


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


@asynccontextmanager
async def behind_proxy() -> AsyncIterator[tuple[TamperingProxy, str]]:
    """A broker that can only be reached through a proxy, with a topic that has ten records."""
    async with TamperingProxy() as proxy:
        broker = Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
        await asyncio.to_thread(broker.start)
        try:
            host, _, port = broker.address_of("PLAINTEXT").rpartition(":")
            proxy.target = (host, int(port))
            servers = f"127.0.0.1:{proxy.port}"
            async with Admin(Settings(bootstrap_servers=(servers,))) as admin:
                await admin.create_topic(NewTopic(TOPIC, partition_count=1))
            async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
                await producer.send_many(TOPIC, [(None, b"%d" % number) for number in range(10)])
            yield proxy, servers
        finally:
            await asyncio.to_thread(broker.stop)


async def ask(servers: str) -> None:
    async with Admin(Settings(bootstrap_servers=(servers,), **IMPATIENT)) as admin:
        await admin.describe_cluster()
        if [topic.name for topic in await admin.list_topics()] != [TOPIC]:
            raise WrongContent


async def send(servers: str) -> None:
    settings = ProducerSettings(
        bootstrap_servers=(servers,), **IMPATIENT, delivery_timeout_ms=CALL_MS, max_block_ms=CALL_MS, linger_ms=0
    )
    async with Producer(settings) as producer:
        await producer.send(TOPIC, b"more")


async def read(servers: str) -> None:
    settings = ConsumerSettings(bootstrap_servers=(servers,), **IMPATIENT, decompressed_max_bytes=8 << 20)
    async with Consumer(settings) as consumer:
        await consumer.assign([TopicPartition(TOPIC, 0)])
        records = await consumer.poll(10, timeout_ms=CALL_MS)
        if [record.value for record in records] not in ([], [b"%d" % number for number in range(10)]):
            raise WrongContent


async def read_columns(servers: str) -> None:
    settings = ConsumerSettings(bootstrap_servers=(servers,), **IMPATIENT, decompressed_max_bytes=8 << 20)
    async with Consumer(settings) as consumer:
        await consumer.assign([TopicPartition(TOPIC, 0)])
        table = await consumer.poll_arrow(timeout_ms=CALL_MS)
        if table.column("value").to_pylist() not in ([], [b"%d" % number for number in range(10)]):
            raise WrongContent


async def join(servers: str) -> None:
    settings = ConsumerSettings(
        bootstrap_servers=(servers,), **IMPATIENT, group_id="g", auto_offset_reset="earliest", heartbeat_interval_ms=50
    )
    async with Consumer(settings) as consumer:
        await consumer.subscribe([TOPIC])
        await consumer.poll(10, timeout_ms=CALL_MS)


WORK = [ask, send, read, join]


class WrongContent(AssertionError):
    """What came is not what was sent."""


async def bear(
    work: Callable[[str], Coroutine[Any, Any, None]], servers: str, *, is_content_checked: bool = True
) -> BarnabasError | None:
    """The typed error that it ended with, or None; everything else, and being late, fails the test."""
    started = time.monotonic()
    error: BarnabasError | None = None
    try:
        await work(servers)
    except BarnabasError as caught:
        error = caught
    except WrongContent:
        if is_content_checked:
            raise
    assert time.monotonic() - started < 2 * CALL_MS / 1000 + GRACE_SECONDS, f"{work.__name__} hung"
    return error


def _size(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


RANDOM = random.Random(7)
TAMPERERS: dict[str, Tamper] = {
    "nonsense": lambda asked, frame: _size(frame[4:8] + RANDOM.randbytes(len(frame) - 8)),
    "nonsense without a correlation id": lambda asked, frame: _size(RANDOM.randbytes(100)),
    "nothing in it": lambda asked, frame: _size(frame[4:8]),
    "not even a size": lambda asked, frame: RANDOM.randbytes(20),
    "a size below zero": lambda asked, frame: struct.pack(">i", -5) + frame[4:],
    "a size of two gigabytes": lambda asked, frame: struct.pack(">i", 2**31 - 1) + frame[4:],
    "a size that is too large": lambda asked, frame: struct.pack(">i", len(frame) + 1000) + frame[4:],
    "a size that is too small": lambda asked, frame: struct.pack(">i", 5) + frame[4:],
    "the answer to another request": lambda asked, frame: _size(b"\x7f\x00\x00\x01" + frame[8:]),
    "another protocol": lambda asked, frame: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no answer": lambda asked, frame: None,
}


def cut(asked: Asked, frame: bytes) -> bytes:
    raise Cut(frame[: len(frame) // 2])


TAMPERERS["half of an answer, then the end"] = cut


@pytest.mark.parametrize("kind", sorted(TAMPERERS))
def test_nonsense_is_a_typed_error_in_time_and_memory(kind: str) -> None:
    async def test() -> None:
        async with behind_proxy() as (proxy, servers):
            proxy.tamper = TAMPERERS[kind]
            tracemalloc.start()
            try:
                for work in WORK:
                    error = await bear(work, servers)
                    assert error is not None or work in (read, join)
                assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES_MAX
            finally:
                tracemalloc.stop()
            assert proxy.tampered

    run(test)


def test_a_client_goes_on_when_its_broker_comes_to_its_senses() -> None:
    async def test() -> None:
        async with behind_proxy() as (proxy, servers):
            settings = ProducerSettings(bootstrap_servers=(servers,), **{**IMPATIENT, "default_api_timeout_ms": 30_000})
            async with Producer(settings) as producer:
                await producer.send(TOPIC, b"before")
                for kind in sorted(TAMPERERS):
                    # Twice it goes wrong, whatever is asked; then no more.
                    left = [2]

                    def twice(asked: Asked, frame: bytes, kind: str = kind, left: list[int] = left) -> bytes | None:
                        left[0] -= 1
                        return TAMPERERS[kind](asked, frame) if left[0] >= 0 else frame

                    proxy.tamper = twice
                    await producer.send(TOPIC, kind.encode())
            proxy.tamper = honest
            async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
                await consumer.assign([TopicPartition(TOPIC, 0)], until_end=True)
                seen = [record.value async for record in consumer][10:]
            # No acknowledgement was lost, and nothing was written twice.
            assert seen == [b"before", *(kind.encode() for kind in sorted(TAMPERERS))]

    run(test)


APIS = [
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.DESCRIBE_CLUSTER,
]


@pytest.mark.slow
@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_answers_with_wrong_bytes_in_them_are_borne(key: ApiKey) -> None:
    async def test() -> None:
        async with behind_proxy() as (proxy, servers):
            chance = random.Random(SEED + int(key))

            def flip(asked: Asked, frame: bytes) -> bytes:
                if asked.api_key != key or chance.random() < 0.3:
                    return frame
                changed = bytearray(frame)
                for _ in range(chance.choice((1, 1, 2, 8))):
                    changed[chance.randrange(8, len(frame))] = chance.choice(
                        (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
                    )
                return bytes(changed)

            for _ in range(6):
                for work in WORK:
                    proxy.tamper = flip
                    # Other names and values than were sent may well be what the bytes now say.
                    await bear(work, servers, is_content_checked=False)
                    proxy.tamper = honest
                    await proxy.drop()

    run(test)


def _with_records(asked: Asked, frame: bytes, records: bytes) -> bytes:
    """A fetch answer in which these are the records of the partition."""
    from barnabas.wire.frame import decode_response

    message: Any = decode_response(response_of(ApiKey.FETCH), asked.api_version, memoryview(frame)[4:])[1]
    for topic in message.responses:
        for part in topic.partitions:
            part.records = records
    correlation_id = int.from_bytes(frame[4:8], "big")
    return b"".join(bytes(part) for part in encode_response(message, asked.api_version, correlation_id=correlation_id))


@pytest.mark.parametrize("work", [read, read_columns])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_a_bomb_is_a_typed_error_in_bounded_memory(
    codec: Codec, work: Callable[[str], Coroutine[Any, Any, None]]
) -> None:
    bomb = bytes(encode_batch([(0, None, bytes(32 << 20), ())], codec=codec))

    async def test() -> None:
        async with behind_proxy() as (proxy, servers):
            proxy.tamper = lambda asked, frame: (
                _with_records(asked, frame, bomb) if asked.api_key == ApiKey.FETCH else frame
            )
            tracemalloc.start()
            try:
                error = await bear(work, servers)
                assert tracemalloc.get_traced_memory()[1] < 30 << 20
            finally:
                tracemalloc.stop()
            assert isinstance(error, CorruptBatch)

    run(test)


def test_a_caller_with_a_short_timeout_gets_past_a_connection_on_which_nothing_arrives_any_more() -> None:
    async def test() -> None:
        async with (
            behind_proxy() as (proxy, servers),
            Admin(Settings(bootstrap_servers=(servers,), **IMPATIENT)) as admin,
        ):
            await admin.describe_cluster()
            proxy.freeze()
            for _ in range(50):
                try:
                    async with asyncio.timeout(0.2):
                        await admin.describe_cluster()
                    return
                except (TimeoutError, BarnabasError):
                    pass
            pytest.fail("the dead connection is still in use")

    run(test)


def test_another_cluster_at_the_same_address_is_found_out() -> None:
    async def test() -> None:
        async with behind_proxy() as (proxy, servers):
            reading = ConsumerSettings(
                bootstrap_servers=(servers,), auto_offset_reset="earliest", metadata_max_age_ms=500
            )
            writing = ProducerSettings(bootstrap_servers=(servers,), linger_ms=0)
            async with Consumer(reading) as consumer, Producer(writing) as producer:
                await consumer.assign([TopicPartition(TOPIC, 0)])
                assert len(await consumer.poll(10)) == 10
                assert (await producer.send(TOPIC, b"here")).offset == 10
                other = Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
                await asyncio.to_thread(other.start)
                try:
                    host, _, port = other.address_of("PLAINTEXT").rpartition(":")
                    proxy.target = (host, int(port))
                    await proxy.drop()
                    # The topic of that name is another one there: what is acknowledged is in it.
                    assert (await producer.send(TOPIC, b"there")).offset == 0
                    records = await consumer.poll(10, timeout_ms=20_000)
                    assert [record.value for record in records] in ([b"here"], [b"there"])
                finally:
                    await producer.close()
                    await consumer.close()
                    await proxy.drop()
                    await asyncio.to_thread(other.stop)

    run(test)


def test_a_broker_that_comes_back_elsewhere_is_found_there(tmp_path: Path) -> None:
    """The address to begin with leads to wherever it is by now; the one that it had named before leads nowhere."""

    async def at(proxy: TamperingProxy, port: int) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / "data", port=port)
        await asyncio.to_thread(broker.start)
        proxy.target = ("127.0.0.1", port)
        return broker

    async def test() -> None:
        first, second = free_ports("127.0.0.1", 2)
        async with TamperingProxy() as proxy:
            servers = (f"127.0.0.1:{proxy.port}",)
            broker = await at(proxy, first)
            try:
                async with Admin(Settings(bootstrap_servers=servers)) as admin:
                    await admin.create_topic(NewTopic(TOPIC, partition_count=1))
                    assert [(each.host, each.port) for each in (await admin.describe_cluster()).brokers] == [
                        ("127.0.0.1", first)
                    ]
                reading = ConsumerSettings(bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
                async with (
                    Producer(ProducerSettings(bootstrap_servers=servers, linger_ms=0)) as producer,
                    Consumer(reading) as consumer,
                ):
                    await consumer.subscribe([TOPIC])
                    await producer.send(TOPIC, b"here")
                    assert [record.value for record in await consumer.poll()] == [b"here"]
                    await consumer.commit()
                    await asyncio.to_thread(broker.kill)
                    await proxy.drop()
                    delivery = await producer.send_soon(TOPIC, b"there")
                    broker = await at(proxy, second)
                    assert (await delivery).offset == 1
                    assert [record.value for record in await consumer.poll()] == [b"there"]
                    await consumer.commit()
            finally:
                await asyncio.to_thread(broker.kill)

    run(test)
