"""Our own producer, consumer and admin client against a broker over real sockets, also when the sockets are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from cutting_proxy import CuttingProxy

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.client.errors import RecordTooLarge
from barnabas.client.offsets import LATEST, Start
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import CodecName, ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.testing import Broker, BrokerProcess

SECONDS_MAX = 60.0


async def make_topic(bootstrap_servers: str, name: str, *, partitions: int = 1) -> list[TopicPartition]:
    async with Admin(Settings(bootstrap_servers=(bootstrap_servers,))) as admin:
        await admin.create_topic(NewTopic(name, partition_count=partitions))
    return [TopicPartition(name, index) for index in range(partitions)]


async def read_all(bootstrap_servers: str, places: list[TopicPartition]) -> list[ConsumerRecord]:
    async with Consumer(ConsumerSettings(bootstrap_servers=(bootstrap_servers,))) as consumer:
        await consumer.assign(places, until_end=True)
        return [record async for record in consumer]


def run(work: Callable[[], object]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()  # type: ignore[misc]

    asyncio.run(bounded())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read_whole_in_every_codec(shared_broker: Broker, name: str, codec: CodecName) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        (place,) = await make_topic(servers, name)
        settings = ProducerSettings(bootstrap_servers=(servers,), compression_type=codec, linger_ms=1)
        async with Producer(settings) as producer:
            sent = [
                await producer.send_soon(
                    name,
                    None if index % 7 == 0 else b"value %d " % index * 20,
                    key=None if index % 5 == 0 else b"key %d" % index,
                    headers=[("a", b"1"), ("a", None), ("ü", b"")] if index % 3 == 0 else (),
                    timestamp_ms=1_700_000_000_000 + index,
                )
                for index in range(1_000)
            ]
            assert [(await delivery).offset for delivery in sent] == list(range(1_000))
        records = await read_all(servers, [place])
        assert [record.offset for record in records] == list(range(1_000))
        for index, record in enumerate(records):
            assert record == ConsumerRecord(
                name,
                0,
                index,
                1_700_000_000_000 + index,
                None if index % 5 == 0 else b"key %d" % index,
                None if index % 7 == 0 else b"value %d " % index * 20,
                (("a", b"1"), ("a", None), ("ü", b"")) if index % 3 == 0 else (),
            )

    run(work)


def test_each_key_keeps_its_order_over_partitions(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        places = await make_topic(servers, name, partitions=6)
        async with Producer(ProducerSettings(bootstrap_servers=(servers,), batch_size=512)) as producer:
            for index in range(3_000):
                await producer.send_soon(name, b"%d" % index, key=b"%d" % (index % 40))
        records = await read_all(servers, places)
        assert len(records) == 3_000
        by_key: dict[bytes | None, list[int]] = {}
        for record in records:
            by_key.setdefault(record.key, []).append(int(record.value or b""))
        for key, values in by_key.items():
            assert values == list(range(int(key or b""), 3_000, 40))

    run(work)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement_delivers(shared_broker: Broker, name: str, acks: int) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        places = await make_topic(servers, name)
        async with Producer(ProducerSettings.of({"bootstrap.servers": servers, "acks": str(acks)})) as producer:
            metadata = await producer.send(name, b"x")
            assert metadata.offset == (-1 if acks == 0 else 0)
        while not (records := await read_all(servers, places)):
            await asyncio.sleep(0)  # without acknowledgement nobody knows when it is there
        assert [record.value for record in records] == [b"x"]

    run(work)


@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_cuts_loses_doubles_and_reorders_nothing(name: str, seed: int) -> None:
    async def work() -> None:
        async with CuttingProxy(seed=seed, bytes_min=300, bytes_max=40_000) as proxy:
            advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
            broker = Broker(settings=advertised)
            await asyncio.to_thread(broker.start)
            try:
                host, _, port = broker.bootstrap_servers.rpartition(":")
                proxy.target = host, int(port)
                await cut_and_judge(proxy, name)
            finally:
                await asyncio.to_thread(broker.stop)

    run(work)


async def cut_and_judge(proxy: CuttingProxy, name: str) -> None:
    servers = f"127.0.0.1:{proxy.port}"
    proxy.is_cutting = False
    places = await make_topic(servers, name, partitions=3)
    proxy.is_cutting = True
    settings = ProducerSettings(
        bootstrap_servers=(servers,), batch_size=700, linger_ms=1, retry_backoff_ms=5, reconnect_backoff_ms=1
    )
    async with Producer(settings) as producer:
        sent = [await producer.send_soon(name, b"%06d" % index, partition=index % 3) for index in range(6_000)]
        offsets = [(await delivery).offset for delivery in sent]
    assert proxy.cuts >= 3, "the network was too kind to prove anything"
    proxy.is_cutting = False
    records = await read_all(servers, places)
    for place in places:
        values = [record.value for record in records if record.partition == place.partition]
        assert values == [b"%06d" % index for index in range(place.partition, 6_000, 3)]
    told = {(index % 3, offset): b"%06d" % index for index, offset in enumerate(offsets)}
    assert told == {(record.partition, record.offset): record.value for record in records}


def test_a_reader_goes_on_over_a_network_that_cuts(name: str) -> None:
    async def work() -> None:
        async with CuttingProxy(seed=5, bytes_min=2_000, bytes_max=60_000) as proxy:
            broker = Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
            await asyncio.to_thread(broker.start)
            try:
                host, _, port = broker.bootstrap_servers.rpartition(":")
                proxy.target, proxy.is_cutting = (host, int(port)), False
                servers = f"127.0.0.1:{proxy.port}"
                places = await make_topic(servers, name, partitions=2)
                async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
                    for index in range(20_000):
                        await producer.send_soon(name, b"%06d" % index, partition=index % 2)
                proxy.is_cutting = True
                settings = ConsumerSettings(
                    bootstrap_servers=(servers,), max_partition_fetch_bytes=8_192, retry_backoff_ms=5
                )
                async with Consumer(settings) as consumer:
                    await consumer.assign(dict.fromkeys(places, Start.at(0)), ends=dict.fromkeys(places, 10_000))
                    records = [record async for record in consumer]
                assert proxy.cuts >= 3
            finally:
                await asyncio.to_thread(broker.stop)
        for place in places:
            read = [record for record in records if record.partition == place.partition]
            assert [record.offset for record in read] == list(range(10_000))
            assert [record.value for record in read] == [b"%06d" % i for i in range(place.partition, 20_000, 2)]

    run(work)


def test_a_full_memory_makes_senders_wait_and_loses_nothing(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        (place,) = await make_topic(servers, name)
        settings = ProducerSettings(
            bootstrap_servers=(servers,), buffer_memory=20_000, batch_size=4_000, max_request_size=20_000
        )
        async with Producer(settings) as producer:
            held: list[int] = []

            async def send(sender: int) -> None:
                for index in range(50):
                    await producer.send_soon(name, b"%02d %03d " % (sender, index) + b"x" * 500)
                    held.append(producer.buffered_bytes)

            await asyncio.gather(*(send(sender) for sender in range(8)))
            await producer.flush()
            assert max(held) <= 20_000
            assert producer.buffered_bytes == 0
            with pytest.raises(RecordTooLarge):
                await producer.send(name, b"x" * 20_000)
        records = await read_all(servers, [place])
        for sender in range(8):
            mine = [record.value[3:6] for record in records if record.value and record.value[:2] == b"%02d" % sender]
            assert mine == [b"%03d" % index for index in range(50)]

    run(work)


def test_a_record_that_is_too_large_is_refused_also_where_a_batch_had_room(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        (place,) = await make_topic(servers, name)
        settings = ProducerSettings(bootstrap_servers=(servers,), batch_size=1 << 20, max_request_size=10_000)
        async with Producer(settings) as producer:
            await producer.send_soon(name, b"small")
            with pytest.raises(RecordTooLarge):
                await producer.send_soon(name, bytes(20_000))
            for _ in range(20):
                await producer.send_soon(name, bytes(900))
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
            await consumer.assign([place], until_end=True)
            assert [len(record.value or b"") async for record in consumer] == [5, *[900] * 20]

    run(work)


def test_a_broker_that_is_killed_and_comes_back_is_found_again(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        with BrokerProcess(tmp_path / "data") as broker:
            servers = broker.bootstrap_servers
            (place,) = await make_topic(servers, name)
            settings = ProducerSettings(bootstrap_servers=(servers,), retry_backoff_ms=20, linger_ms=0)
            consumer = Consumer(ConsumerSettings(bootstrap_servers=(servers,), retry_backoff_ms=20))
            async with Producer(settings) as producer, consumer:
                await consumer.assign([place])
                await producer.send(name, b"before")
                assert [record.value for record in await consumer.poll()] == [b"before"]
                await asyncio.to_thread(broker.kill)
                delivery = await producer.send_soon(name, b"meanwhile")
                assert await consumer.poll(timeout_ms=50) == []
                await asyncio.to_thread(broker.start)
                assert broker.bootstrap_servers == servers
                assert (await delivery).offset == 1
                await producer.send(name, b"after")
                read: list[bytes | None] = []
                while len(read) < 2:
                    read += [record.value for record in await consumer.poll()]
                assert read == [b"meanwhile", b"after"]

    run(work)


def test_seek_pause_and_resume_change_what_comes_next(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        first, second = await make_topic(servers, name, partitions=2)
        async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            for index in range(100):
                await producer.send_soon(name, b"%d" % index, partition=index % 2)
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers,), max_poll_records=10)) as consumer:
            await consumer.assign([first, second])
            consumer.pause(second)
            taken = [record for _ in range(5) for record in await consumer.poll()]
            assert {record.partition for record in taken} == {0}
            assert consumer.position(first) == 50
            assert consumer.high_watermark(first) == 50
            consumer.pause(first)
            assert await consumer.poll(timeout_ms=20) == []
            consumer.resume(second)
            consumer.seek(second, 40)
            assert [record.offset for record in await consumer.poll()] == list(range(40, 50))
            await consumer.assign({first: LATEST, second: Start.before_last(3)})
            assert [record.offset for record in await consumer.poll()] == [47, 48, 49]

    run(work)


def test_what_is_not_there_is_said_at_once(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers

    async def work() -> None:
        await make_topic(servers, name)
        async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            with pytest.raises(ApiError) as refused:
                await producer.send(name, b"x", partition=3)
            assert refused.value.error is errors.UNKNOWN_TOPIC_OR_PARTITION
        async with Admin(Settings(bootstrap_servers=(servers,))) as admin:
            with pytest.raises(ApiError) as refused:
                await admin.create_topic(NewTopic(name))
            assert refused.value.error is errors.TOPIC_ALREADY_EXISTS
            await admin.delete_topic(name)
            while name in {topic.name for topic in await admin.list_topics()}:
                await asyncio.sleep(0.05)  # Kafka's broker may hear of it a little later than its controller

    run(work)
