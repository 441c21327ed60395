"""Our clients with three brokers: they read from the replica in their rack, and follow leaders and coordinators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas import Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, TopicPartition
from barnabas.client.fetch.lanes import FETCH_LANE
from barnabas.testing import Cluster

SECONDS_MAX = 120.0
BROKERS = (1, 2, 3)
RACKS = {number: f"rack-{number}" for number in BROKERS}
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
    }
    cluster = Cluster(tmp_path_factory.mktemp("clients") / "cluster", settings=settings)
    for number, path in cluster._configs.items():
        path.write_text(f"{path.read_text()}\nbroker.rack={RACKS[number]}\n")
    with cluster:
        yield cluster


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


def servers(cluster: Cluster) -> tuple[str, ...]:
    return tuple(cluster.bootstrap_servers.split(","))


async def leader_of(admin: Admin, place: TopicPartition) -> int:
    topic = (await admin.describe_topics([place.topic]))[place.topic]
    return topic.partitions[place.partition].leader  # type: ignore[union-attr]


async def move(admin: Admin, place: TopicPartition, leader: int) -> None:
    """Have another broker lead: it becomes the preferred one, and is elected."""
    others = [number for number in BROKERS if number != leader]
    assert await admin.alter_reassignments({place: [leader, *others]}) == {place: None}
    while await admin.list_reassignments([place]):
        await asyncio.sleep(0.05)
    while await leader_of(admin, place) != leader:
        await admin.elect_leaders([place])
        await asyncio.sleep(0.05)


def test_a_consumer_reads_from_the_replica_in_its_rack_and_from_the_leader_when_that_dies(
    cluster: Cluster, name: str
) -> None:
    place = TopicPartition(name, 0)

    async def work() -> None:
        async with (
            Admin(Settings(bootstrap_servers=servers(cluster))) as admin,
            Producer(ProducerSettings(bootstrap_servers=servers(cluster))) as producer,
        ):
            await admin.create_topic(NewTopic(name, partition_count=1, replication_factor=3))
            leader = await leader_of(admin, place)
            nearest = next(number for number in BROKERS if number != leader)
            settings = ConsumerSettings(bootstrap_servers=servers(cluster), client_rack=RACKS[nearest])
            async with Consumer(settings) as consumer:
                await consumer.assign([place])
                seen: list[bytes | None] = []
                written = 0

                async def until(is_done: Callable[[], bool]) -> None:
                    nonlocal written
                    while not is_done() or len(seen) < written:
                        if not is_done():
                            await producer.send(name, b"%d" % written)
                            written += 1
                        seen.extend(record.value for record in await consumer.poll(timeout_ms=200))

                cursor = consumer._cursors[place]
                await until(lambda: cursor.closest_replica == nearest)
                asked = consumer.cluster.connection(nearest, FETCH_LANE)
                assert asked.is_open
                cluster.kill(nearest)
                await until(lambda: cursor.closest_replica != nearest)
                await until(lambda: len(seen) > 20)
                cluster.start(nearest)
            assert seen == [b"%d" % number for number in range(written)]

    run(work)


def test_nothing_is_lost_doubled_or_swapped_while_leaders_move(cluster: Cluster, name: str) -> None:
    places = [TopicPartition(name, index) for index in range(3)]

    async def work() -> None:
        async with Admin(Settings(bootstrap_servers=servers(cluster))) as admin:
            await admin.create_topic(
                NewTopic(name, partition_count=3, replication_factor=3, configs={"min.insync.replicas": "2"})
            )
            is_over = asyncio.Event()
            written: Counter[int] = Counter()

            async def write() -> None:
                async with Producer(ProducerSettings(bootstrap_servers=servers(cluster))) as producer:
                    while not is_over.is_set():
                        for place in places:
                            await producer.send_soon(name, b"%d" % written[place.partition], partition=place.partition)
                            written[place.partition] += 1
                        await asyncio.sleep(0.002)

            seen: dict[int, list[bytes | None]] = {place.partition: [] for place in places}

            async def read() -> None:
                async with Consumer(ConsumerSettings(bootstrap_servers=servers(cluster))) as consumer:
                    await consumer.assign(places)
                    while not is_over.is_set() or any(len(seen[index]) < written[index] for index in seen):
                        for record in await consumer.poll(timeout_ms=100):
                            seen[record.partition].append(record.value)

            working = [asyncio.create_task(write()), asyncio.create_task(read())]
            for _ in range(3):
                for place in places:
                    leader = await leader_of(admin, place)
                    await move(admin, place, leader % 3 + 1)
            is_over.set()
            await asyncio.gather(*working)
            for index, values in seen.items():
                assert values == [b"%d" % number for number in range(written[index])]

    run(work)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_while_its_coordinator_moves(cluster: Cluster, name: str, protocol: str) -> None:
    coordinator = TopicPartition(OFFSETS_TOPIC, 0)

    async def work() -> None:
        settings = ConsumerSettings(
            bootstrap_servers=servers(cluster),
            group_id=name,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with (
            Admin(Settings(bootstrap_servers=servers(cluster))) as admin,
            Producer(ProducerSettings(bootstrap_servers=servers(cluster))) as producer,
            Consumer(settings) as consumer,
        ):
            await admin.create_topic(NewTopic(name, partition_count=2, replication_factor=3))
            await consumer.subscribe([name])
            seen: Counter[bytes | None] = Counter()
            written = 0
            for turn in range(4):
                for _ in range(20):
                    await producer.send(name, b"%d" % written, partition=written % 2)
                    written += 1
                while sum(seen.values()) < written:
                    seen.update(record.value for record in await consumer.poll(timeout_ms=500))
                await consumer.commit()
                if turn < 3:
                    await move(admin, coordinator, await leader_of(admin, coordinator) % 3 + 1)
            assert seen == Counter(b"%d" % number for number in range(written))
            committed = await admin.group_offsets(name)
            assert sum(entry.offset for entry in committed.values()) == written

    run(work)


def test_a_transaction_goes_on_while_its_coordinator_moves(cluster: Cluster, name: str) -> None:
    coordinator = TopicPartition(TRANSACTIONS_TOPIC, 0)

    async def work() -> None:
        async with (
            Admin(Settings(bootstrap_servers=servers(cluster))) as admin,
            Producer(ProducerSettings(bootstrap_servers=servers(cluster), transactional_id=name)) as producer,
        ):
            await admin.create_topic(NewTopic(name, partition_count=1, replication_factor=3))
            for turn in range(3):
                await producer.begin_transaction()
                await producer.send(name, b"%d" % turn)
                assert (await admin.describe_transaction(name)).coordinator == await leader_of(admin, coordinator)
                await move(admin, coordinator, await leader_of(admin, coordinator) % 3 + 1)
                if turn == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        settings = ConsumerSettings(bootstrap_servers=servers(cluster), isolation_level="read_committed")
        async with Consumer(settings) as consumer:
            # A commit is answered when it is decided; its marker may still be on the way.
            await consumer.assign([TopicPartition(name, 0)])
            seen: list[bytes | None] = []
            while b"2" not in seen:
                seen.extend(record.value for record in await consumer.poll(timeout_ms=500))
            assert seen == [b"0", b"2"]

    run(work)
