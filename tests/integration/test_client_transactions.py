"""Our producer's transactions: all or nothing, also when the one who began is killed and another ends.

The broker is Barnabas in this process, or whatever ``BARNABAS_TEST_BOOTSTRAP`` names: Apache Kafka judges the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal

import pytest
from bootstrapping import bootstrap, needs_consumer_protocol
from waiting import until_async

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.errors import CommitFailed, NoTransaction, ProducerFenced, TransactionAborted
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import OpenTransaction, State, Transactions, end_transaction
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import NO_OFFSET, TopicPartition

SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with bootstrap() as servers:
        yield servers


@pytest.fixture(params=[1, 2], ids=["version1", "version2"], autouse=True)
def _protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers of today speak both versions of the protocol; a producer that knows only the first is one from before."""

    async def speaks_version_2(self: Transactions) -> bool:
        return False

    if request.param == 1:
        monkeypatch.setattr(Transactions, "_speaks_version_2", speaks_version_2)


@pytest.fixture
def topic() -> str:
    return f"transactions-{uuid.uuid4().hex[:10]}"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


def settings(servers: str, name: str) -> ProducerSettings:
    return ProducerSettings(bootstrap_servers=(servers,), transactional_id=name, linger_ms=1, retry_backoff_ms=20)


async def make_topic(servers: str, name: str, *, partitions: int = 2) -> None:
    async with Admin(Settings(bootstrap_servers=(servers,))) as admin:
        await admin.create_topic(NewTopic(name, partition_count=partitions))


async def sees(servers: str, name: str, expected: list[bytes], *, partitions: int = 2) -> None:
    """Readers see this. In version 1 an end is acknowledged before its markers are written: it may take a moment."""
    async with asyncio.timeout(20):
        while len(found := await committed(servers, name, partitions=partitions)) < len(expected):
            await asyncio.sleep(0.1)
    assert found == expected


async def committed(servers: str, name: str, *, partitions: int = 2) -> list[bytes | None]:
    reading = ConsumerSettings(bootstrap_servers=(servers,), isolation_level="read_committed")
    async with Consumer(reading) as consumer:
        await consumer.assign([TopicPartition(name, index) for index in range(partitions)], until_end=True)
        return sorted([record.value async for record in consumer], key=lambda value: value or b"")


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic)
        async with Producer(settings(servers, topic)) as producer:
            for turn in range(4):
                async with producer.transaction():
                    for index in range(20):
                        await producer.send_soon(topic, b"%d-%02d" % (turn, index), partition=index % 2)

            async def fail() -> None:
                async with producer.transaction():
                    await producer.send(topic, b"aborted")
                    1 / 0  # noqa: B018

            with pytest.raises(ZeroDivisionError):
                await fail()
            async with producer.transaction():
                await producer.send(topic, b"after")
            async with producer.transaction():
                pass
        expected = [b"%d-%02d" % (turn, index) for turn in range(4) for index in range(20)]
        await sees(servers, topic, [*expected, b"after"])

    run(work)


def test_records_outside_of_a_transaction_are_refused(servers: str, topic: str) -> None:
    async def work() -> None:
        async with Producer(settings(servers, topic)) as producer:
            with pytest.raises(NoTransaction):
                await producer.send(topic, b"x")
        async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            with pytest.raises(NoTransaction):
                await producer.begin_transaction()

    run(work)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_an_end_that_was_interrupted_is_asked_for_again(servers: str, topic: str, commit: bool) -> None:
    async def work() -> None:
        await make_topic(servers, topic)
        async with Producer(settings(servers, topic)) as producer:
            end, other = producer.commit_transaction, producer.abort_transaction
            if not commit:
                end, other = other, end
            await producer.begin_transaction()
            await producer.send(topic, b"one")
            ending = asyncio.create_task(end())
            while producer._transactional().state is State.OPEN or producer._transactional().state is State.DOOMED:
                await asyncio.sleep(0)
            ending.cancel()
            await asyncio.wait([ending])
            if producer._transactional().state is State.ENDING:
                with pytest.raises(NoTransaction, match="nobody knows"):
                    await other()
                await end()
            async with producer.transaction():
                await producer.send(topic, b"two")
        await sees(servers, topic, [b"one", b"two"] if commit else [b"two"])

    run(work)


def test_a_second_producer_of_the_name_fences_the_first(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic)
        async with Producer(settings(servers, topic)) as first, Producer(settings(servers, topic)) as second:
            await first.begin_transaction()
            await first.send(topic, b"of the first")
            async with second.transaction():
                await second.send(topic, b"of the second")
            with pytest.raises((ProducerFenced, TransactionAborted)):
                await first.commit_transaction()
            with pytest.raises(ProducerFenced):
                await first.abort_transaction()
        await sees(servers, topic, [b"of the second"])

    run(work)


def test_offsets_are_stored_with_the_records_or_not_at_all(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        await make_topic(servers, f"{topic}-out", partitions=1)
        async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            for index in range(30):
                await producer.send_soon(topic, b"%02d" % index)
        reading = ConsumerSettings(
            bootstrap_servers=(servers,), group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False
        )
        place = TopicPartition(topic, 0)
        async with Consumer(reading) as consumer, Producer(settings(servers, topic)) as producer:
            await consumer.subscribe([topic])
            for turn, stored in enumerate((10, 10, 20)):
                records = await consumer.poll(10)
                with contextlib.suppress(CommitFailed):
                    async with producer.transaction():
                        for record in records:
                            await producer.send_soon(f"{topic}-out", record.value)
                        await producer.send_offsets({place: consumer.position(place)}, consumer.group_metadata)
                        if turn == 1:
                            raise CommitFailed("on purpose")
                # To ask is to wait for the markers. Kafka 2.8 lets the next transaction begin before its coordinator of
                # groups has heard of them, and may then commit the offsets of that one as well (KAFKA-17507).
                found = await consumer.committed([place])
                assert found[place] is not None
                assert found[place].offset == stored  # type: ignore[union-attr]
                if turn == 1:
                    consumer.seek(place, stored)
        expected = [b"%02d" % index for index in range(20)]
        await sees(servers, f"{topic}-out", expected, partitions=1)

    run(work)


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=needs_consumer_protocol)])
def test_a_member_whom_the_group_has_given_up_stores_no_offsets(
    servers: str, topic: str, protocol: Literal["classic", "consumer"]
) -> None:
    """Others may have done the same records meanwhile: what it got in its time is not its to finish."""

    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        async with Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            await producer.send(topic, b"once")
        reading = ConsumerSettings(
            bootstrap_servers=(servers,),
            group_id=topic,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        )
        place = TopicPartition(topic, 0)
        async with Consumer(reading) as consumer, Producer(settings(servers, topic)) as producer:
            await consumer.subscribe([topic])
            assert await consumer.poll(10)
            assert consumer._group is not None
            session = consumer._group.session
            await session.leave()  # as if its session had run out: the group forgets it, and it does not know
            await until_async(lambda: session.membership.is_lost, "the member hears of it")

            async def finish() -> None:
                async with producer.transaction():
                    await producer.send_soon(topic, b"twice")
                    await producer.send_offsets(consumer.positions, consumer.group_metadata)

            with pytest.raises(BarnabasError):
                await finish()
            assert (await consumer.committed([place]))[place] is None

    run(work)


BEGINNER = """
import asyncio, json, sys
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings

async def main(servers, topic, name):
    producer = Producer(ProducerSettings(bootstrap_servers=(servers,), transactional_id=name))
    await producer.begin_transaction()
    for index in range(50):
        await producer.send_soon(topic, b"%02d" % index, partition=index % 2)
    print(json.dumps(await producer.hand_over()), flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


def test_that_there_is_no_position_yet_is_not_stored_as_one(servers: str, topic: str) -> None:
    """It would send the group back to the start, and all that it has done would be done again."""

    async def work() -> None:
        place = TopicPartition(topic, 0)
        reading = ConsumerSettings.of({"bootstrap.servers": servers, "group.id": topic})
        writing = ProducerSettings.of({"bootstrap.servers": servers, "transactional.id": topic})
        async with Admin(Settings.of({"bootstrap.servers": servers})) as admin:
            await admin.create_topic(NewTopic(topic, 1))
        async with Consumer(reading) as consumer, Producer(writing) as producer:
            await consumer.assign([place])
            consumer._cursors[place].position = NO_OFFSET  # as while the offsets of its group are being waited for
            unknown = consumer.position(place)
            assert consumer.positions == {}
            with pytest.raises(ValueError, match="no offset to store"):
                await consumer.commit({place: unknown})
            with pytest.raises(ValueError, match="no offset to store"):
                async with producer.transaction():
                    await producer.send_offsets({place: unknown}, consumer.group_metadata)

    run(work)


@pytest.mark.parametrize("commit", [True, False])
def test_another_process_ends_what_a_killed_one_began(servers: str, topic: str, commit: bool) -> None:
    async def work() -> None:
        await make_topic(servers, topic)
        beginner = await asyncio.create_subprocess_exec(
            sys.executable, "-c", BEGINNER, servers, topic, topic, stdout=subprocess.PIPE
        )
        assert beginner.stdout is not None
        handle = OpenTransaction(*json.loads(await beginner.stdout.readline()))
        beginner.kill()
        await beginner.wait()
        assert await committed(servers, topic) == []
        async with Cluster(Settings(bootstrap_servers=(servers,))) as cluster:
            await end_transaction(cluster, handle, commit=commit)
            await end_transaction(cluster, handle, commit=commit)
        expected = [b"%02d" % index for index in range(50)] if commit else []
        await sees(servers, topic, expected)
        async with Producer(settings(servers, topic)) as producer, producer.transaction():
            await producer.send(topic, b"next")
        await sees(servers, topic, [*expected, b"next"])

    run(work)
