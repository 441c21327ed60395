"""Our consumer as a member of groups, alone, with its like, and with members of other clients.

The broker is Barnabas in this process, or whatever ``BARNABAS_TEST_BOOTSTRAP`` names: Apache Kafka judges the tests.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest
from bootstrapping import bootstrap, needs_consumer_protocol
from foreign_members import KafkaPython, Librdkafka

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer, ConsumerRecord, RebalanceListener
from barnabas.client.errors import CommitFailed, NoGroup, OffsetGone
from barnabas.client.offsets import EARLIEST
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

SECONDS_MAX = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    quick = {"group.consumer.min.heartbeat.interval.ms": "100", "group.consumer.heartbeat.interval.ms": "100"}
    with bootstrap(quick) as servers:
        yield servers


@pytest.fixture
def topic() -> str:
    return f"groups-{uuid.uuid4().hex[:10]}"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


async def make_topic(servers: str, name: str, *, partitions: int) -> None:
    async with Admin(Settings(bootstrap_servers=(servers,))) as admin:
        await admin.create_topic(NewTopic(name, partition_count=partitions))


async def fill(servers: str, name: str, values: Sequence[int], *, partitions: int) -> None:
    async with Producer(ProducerSettings(bootstrap_servers=(servers,), linger_ms=1)) as producer:
        for value in values:
            await producer.send_soon(name, b"%d" % value, partition=value % partitions)


def settings(servers: str, group: str, **more: Any) -> ConsumerSettings:
    return ConsumerSettings(
        bootstrap_servers=(servers,),
        group_id=group,
        auto_offset_reset="earliest",
        **{"heartbeat_interval_ms": 100, "session_timeout_ms": 10_000, "retry_backoff_ms": 20, **more},
    )


def protocol(strategy: str) -> dict[str, Any]:
    """Settings for a way of sharing: an assignor of the classic protocol, or the consumer protocol."""
    return {"group_protocol": strategy} if strategy == "consumer" else {"partition_assignment_strategy": (strategy,)}


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.lines: list[tuple[str, list[int]]] = []

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.lines.append(("assigned", [place.partition for place in partitions]))

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.lines.append(("revoked", [place.partition for place in partitions]))

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.lines.append(("lost", [place.partition for place in partitions]))


def test_a_group_goes_on_where_it_stopped(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=3)
        await fill(servers, topic, range(300), partitions=3)
        async with Consumer(settings(servers, topic)) as consumer:
            await consumer.subscribe([topic])
            first: list[int] = []
            async for record in consumer:
                first.append(int(record.value or b""))
                if len(first) == 100:
                    break
        async with Consumer(settings(servers, topic)) as consumer:
            await consumer.subscribe(topic)
            rest: list[int] = []
            while len(rest) < 200:
                rest += [int(record.value or b"") for record in await consumer.poll()]
            assert await consumer.poll(timeout_ms=50) == []
        assert sorted(first + rest) == list(range(300))

    run(work)


def test_a_commit_is_what_others_see(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        await fill(servers, topic, range(50), partitions=1)
        place = TopicPartition(topic, 0)
        async with Consumer(settings(servers, topic, enable_auto_commit=False)) as consumer:
            await consumer.subscribe([topic])
            taken = await consumer.poll(20)
            assert await consumer.committed([place]) == {place: None}
            await consumer.commit()
            assert (await consumer.committed())[place] == (len(taken), "", 0)
            consumer.commit_soon({place: 5})
            await consumer.commit_soon({place: 7})
            assert (await consumer.committed())[place][0] == 7  # type: ignore[index]
            assert consumer.lag(place) == 50 - consumer.position(place)
            assert await consumer.end_offsets([place]) == {place: 50}
            await consumer.seek_to({place: EARLIEST})
            assert (await consumer.poll())[0].offset == 0
        async with Consumer(settings(servers, topic)) as consumer:
            await consumer.subscribe([topic])
            assert (await consumer.poll())[0].offset == 7

    run(work)


@pytest.mark.parametrize(
    "strategy",
    [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        pytest.param("consumer", marks=needs_consumer_protocol),
    ],
)
def test_members_that_come_and_go_share_and_miss_nothing(servers: str, topic: str, strategy: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=6)
        await fill(servers, topic, range(1_200), partitions=6)
        seen: Counter[int] = Counter()
        diaries = [Diary(), Diary(), Diary()]
        stops = [asyncio.Event() for _ in diaries]
        owned: list[list[TopicPartition]] = [[], [], []]

        async def member(index: int) -> None:
            mine = settings(servers, topic, max_poll_records=20, **protocol(strategy))
            async with Consumer(mine) as consumer:
                await consumer.subscribe([topic], listener=diaries[index])
                while not stops[index].is_set():
                    for record in await consumer.poll(timeout_ms=50):
                        seen[int(record.value or b"")] += 1
                    owned[index] = consumer.assignment
            owned[index] = []

        async def until(condition: Callable[[], bool]) -> None:
            while not condition():
                await asyncio.sleep(0.02)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(member(0))
            await until(lambda: len(owned[0]) == 6 and len(seen) > 100)
            tasks.create_task(member(1))
            await until(lambda: [len(places) for places in owned] == [3, 3, 0])
            tasks.create_task(member(2))
            await until(lambda: [len(places) for places in owned] == [2, 2, 2])
            assert len({place for places in owned for place in places}) == 6
            await fill(servers, topic, range(1_200, 2_400), partitions=6)
            stops[1].set()
            await until(lambda: sorted(len(places) for places in owned) == [0, 3, 3])
            await until(lambda: len(seen) == 2_400)
            stops[0].set()
            stops[2].set()
        assert set(seen) == set(range(2_400))
        assert set(seen.values()) == {1}, "members that leave in order leave nothing to be read twice"
        if strategy == "cooperative-sticky":
            assert ("revoked", [0, 1, 2, 3, 4, 5]) not in diaries[0].lines

    run(work)


def test_a_pattern_finds_topics_that_come_later(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, f"{topic}-a", partitions=1)
        await make_topic(servers, f"other-{topic}", partitions=1)
        async with Consumer(settings(servers, topic, metadata_max_age_ms=100)) as consumer:
            await consumer.subscribe(re.compile(f"{topic}-.*"))
            while not consumer.assignment:
                await consumer.poll(timeout_ms=20)
            await make_topic(servers, f"{topic}-b", partitions=2)
            while len(consumer.assignment) < 3:
                await consumer.poll(timeout_ms=20)
            assert {place.topic for place in consumer.assignment} == {f"{topic}-a", f"{topic}-b"}

    run(work)


def test_partitions_that_are_added_are_shared_out(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        async with (
            Consumer(settings(servers, topic, metadata_max_age_ms=100)) as consumer,
            Admin(Settings(bootstrap_servers=(servers,))) as admin,
        ):
            await consumer.subscribe([topic])
            while not consumer.assignment:
                await consumer.poll(timeout_ms=20)
            await admin.create_partitions({topic: 4})
            while len(consumer.assignment) < 4:
                await consumer.poll(timeout_ms=20)

    run(work)


def test_a_static_member_comes_back_without_a_rebalance(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=4)
        diary = Diary()
        stay = asyncio.Event()

        async def neighbour() -> None:
            async with Consumer(settings(servers, topic, group_instance_id="b")) as consumer:
                await consumer.subscribe([topic], listener=diary)
                while not stay.is_set():
                    await consumer.poll(timeout_ms=20)

        async def once() -> list[TopicPartition]:
            async with Consumer(settings(servers, topic, group_instance_id="a")) as consumer:
                await consumer.subscribe([topic])
                while len(consumer.assignment) != 2:
                    await consumer.poll(timeout_ms=20)
                return consumer.assignment

        task = asyncio.create_task(neighbour())
        try:
            first = await once()
            while not diary.lines or diary.lines[-1] != ("assigned", [2, 3]):
                await asyncio.sleep(0.02)
            lines = list(diary.lines)
            assert await once() == first
            assert diary.lines == lines
        finally:
            stay.set()
            await task

    run(work)


def test_whoever_does_not_poll_loses_its_partitions(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=2)
        await fill(servers, topic, range(10), partitions=2)
        slow = settings(servers, topic, max_poll_interval_ms=400, enable_auto_commit=False)
        diary = Diary()
        async with Consumer(slow) as sleeper, Consumer(settings(servers, topic)) as other:
            await sleeper.subscribe([topic], listener=diary)
            assert await sleeper.poll()
            await other.subscribe([topic])
            read: list[ConsumerRecord] = []
            while len(read) < 10:
                read += await other.poll()
            with pytest.raises(CommitFailed):
                await sleeper.commit()
            assert await sleeper.poll(timeout_ms=100) == []
            assert diary.lines[:2] == [("assigned", [0, 1]), ("lost", [0, 1])]

    run(work)


def test_a_consumer_says_what_it_lacks(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
            with pytest.raises(NoGroup):
                await consumer.subscribe([topic])
            with pytest.raises(NoGroup):
                await consumer.commit({TopicPartition(topic, 0): 1})
        strict = ConsumerSettings(bootstrap_servers=(servers,), group_id=topic, auto_offset_reset="none")
        async with Consumer(strict) as consumer:
            await consumer.subscribe([topic])
            with pytest.raises(OffsetGone):
                await consumer.poll()

    run(work)


def test_an_exception_stores_nothing_that_may_not_be_done_with(servers: str, topic: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=1)
        await fill(servers, topic, range(5), partitions=1)

        async def fail() -> None:
            async with Consumer(settings(servers, topic)) as consumer:
                await consumer.subscribe([topic])
                async for record in consumer:
                    1 / int(record.value or b"")

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with Consumer(settings(servers, topic)) as consumer:
            await consumer.subscribe([topic])
            assert (await consumer.poll())[0].value == b"0"

    run(work)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("foreign", "strategy"),
    [
        (Librdkafka, "range"),
        (Librdkafka, "cooperative-sticky"),
        (Librdkafka, "roundrobin"),
        pytest.param(Librdkafka, "consumer", marks=needs_consumer_protocol),
        (KafkaPython, "range"),
    ],
)
def test_members_of_other_clients_share_the_work(servers: str, topic: str, foreign: Any, strategy: str) -> None:
    async def work() -> None:
        await make_topic(servers, topic, partitions=4)
        await fill(servers, topic, range(800), partitions=4)
        ours: list[int] = []
        mine = settings(servers, topic, enable_auto_commit=False, max_poll_records=20, **protocol(strategy))
        async with Consumer(mine) as consumer:
            await consumer.subscribe([topic])
            while len(ours) < 100:
                ours += await read_and_commit(consumer)
            other = await asyncio.to_thread(foreign, servers, topic, topic, strategy)
            thread = threading.Thread(target=other.run, daemon=True)
            thread.start()
            while (len(consumer.assignment), other.partition_count) != (2, 2):
                ours += await read_and_commit(consumer)
            await fill(servers, topic, range(800, 1_600), partitions=4)
            deadline = time.monotonic() + 30
            while len(set(ours) | set(other.seen)) < 1_600:
                assert time.monotonic() < deadline, "records are missing"
                ours += await read_and_commit(consumer)
            other.is_over.set()
            while len(consumer.assignment) < 4:
                ours += await read_and_commit(consumer)
        await asyncio.to_thread(thread.join)
        assert set(ours) | set(other.seen) == set(range(1_600))
        assert len(ours) + len(other.seen) == 1_600, "nothing is read twice when each commits before it goes on"
        assert other.seen

    run(work)


async def read_and_commit(consumer: Consumer) -> list[int]:
    values = [int(record.value or b"") for record in await consumer.poll(timeout_ms=50)]
    if values:
        try:
            await consumer.commit()
        except BarnabasError as error:
            raise AssertionError("a commit between two polls is always in its generation") from error
    return values
