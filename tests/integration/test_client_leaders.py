"""Leaders that move: whoever is told of the new one goes there at once, and asks for metadata only if not told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from tampering_proxy import Asked, TamperingProxy

from barnabas import Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, TopicPartition
from barnabas.client.cluster.cluster import Cluster as Known
from barnabas.client.errors import LogTruncated
from barnabas.client.group.commits import OffsetAndMetadata
from barnabas.model import errors
from barnabas.testing import Broker, Cluster
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import encode_response
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse

SECONDS_MAX = 120.0
BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("leaders") / "cluster") as cluster:
        yield cluster


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


def servers(cluster: Cluster) -> tuple[str, ...]:
    return tuple(cluster.bootstrap_servers.split(","))


async def seen_leaders(known: Known, place: TopicPartition) -> dict[int, int]:
    """Who leads, as each broker sees it."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=place.topic)])
    leaders = {}
    for broker in BROKERS:
        answer = await known.call(broker, request, MetadataResponse)
        leaders[broker] = answer.topics[0].partitions[place.partition].leader_id
    return leaders


async def move(admin: Admin, place: TopicPartition) -> int:
    """Have another broker lead, and wait until every broker has heard of it."""
    old = (await seen_leaders(admin.cluster, place))[1]
    new = old % len(BROKERS) + 1
    others = [number for number in BROKERS if number != new]
    assert await admin.alter_reassignments({place: [new, *others]}) == {place: None}
    while set((await seen_leaders(admin.cluster, place)).values()) != {new}:
        await admin.elect_leaders([place])
        await asyncio.sleep(0.05)
    return new


class Count:
    """How often a client has asked for metadata."""

    def __init__(self, known: Known) -> None:
        self.asked = 0
        self._call = known.call_any
        known.call_any = self._call_any  # type: ignore[method-assign, assignment]

    async def _call_any(self, message: Any, *arguments: Any, **more: Any) -> Any:
        self.asked += isinstance(message, MetadataRequest)
        return await self._call(message, *arguments, **more)


def test_nobody_asks_for_metadata_when_a_leader_moves(cluster: Cluster, name: str) -> None:
    place = TopicPartition(name, 0)

    async def work() -> None:
        async with (
            Admin(Settings(bootstrap_servers=servers(cluster))) as admin,
            Producer(ProducerSettings(bootstrap_servers=servers(cluster), retry_backoff_ms=60_000)) as producer,
            Consumer(
                ConsumerSettings(bootstrap_servers=servers(cluster), retry_backoff_ms=60_000, fetch_max_wait_ms=10)
            ) as consumer,
        ):
            await admin.create_topic(NewTopic(name, partition_count=1, replication_factor=3))
            await move(admin, place)
            written = 0

            async def pass_on() -> None:
                nonlocal written
                await producer.send(name, b"%d" % written)
                written += 1
                assert [record.value for record in await consumer.poll()] == [b"%d" % (written - 1)]

            await consumer.assign([place])
            await pass_on()
            counts = [Count(producer.cluster), Count(consumer.cluster)]
            for _ in range(4):
                consumer.pause(place)  # or it may come to the new leader before that one knows
                leader = await move(admin, place)
                consumer.resume(place)
                await pass_on()  # the back-off of a minute says that nobody waits either
                assert producer.cluster.leader_of(place) == consumer.cluster.leader_of(place) == leader
            assert [count.asked for count in counts] == [0, 0]

    run(work)


async def read_to(consumer: Consumer[Any, Any], end: int) -> list[tuple[int, bytes | None]]:
    """Records as offset and value, up to the one before ``end``."""
    seen: list[tuple[int, bytes | None]] = []
    while not seen or seen[-1][0] < end - 1:
        seen += [(record.offset, record.value) for record in await consumer.poll()]
    return seen


def test_a_leader_that_lost_what_was_read_is_noticed(cluster: Cluster, name: str) -> None:
    """The follower is killed and misses records; then the leader is, and the follower must lead without them."""
    place, leader, follower = TopicPartition(name, 0), 2, 3
    common: dict[str, Any] = {"bootstrap_servers": servers(cluster), "enable_auto_commit": False}
    lenient = ConsumerSettings(**common, group_id=name, auto_offset_reset="latest")
    strict = ConsumerSettings(**common, group_id=name, auto_offset_reset="none")
    old = [(offset, b"old %d" % offset) for offset in range(8)]
    new = [(offset, b"new %d" % offset) for offset in range(5, 11)]

    async def work() -> None:
        async with (
            Admin(Settings(bootstrap_servers=servers(cluster))) as admin,
            Producer(ProducerSettings(bootstrap_servers=servers(cluster))) as producer,
            Consumer(lenient) as goes_on,
            Consumer(strict) as stops,
        ):
            configs = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
            await admin.create_topic(NewTopic(name, assignments={0: [leader, follower]}, configs=configs))
            for _, value in old[:5]:
                await producer.send(name, value)
            cluster.kill(follower)
            for _, value in old[5:]:
                await producer.send(name, value)
            for consumer in (goes_on, stops):
                await consumer.assign([place])
                assert await read_to(consumer, 8) == old
            await goes_on.commit()
            epoch = (await goes_on.committed())[place].leader_epoch  # type: ignore[union-attr]
            assert epoch == goes_on.cluster.metadata.leader_epoch(place) >= 0

            cluster.kill(leader)
            await asyncio.to_thread(cluster.start, follower)
            for _, value in new:
                await producer.send(name, value)
            assert await read_to(goes_on, 11) == new
            with pytest.raises(LogTruncated) as caught:
                await stops.poll()
            assert (caught.value.position, caught.value.divergent_offset) == (8, 5)

            # Whoever takes the group's work over finds it too: by offset alone nothing would be missing.
            await goes_on.subscribe([name])
            assert await read_to(goes_on, 11) == new
            await goes_on.commit()
            committed = (await goes_on.committed([place]))[place]
            assert committed == OffsetAndMetadata(11, "", goes_on.cluster.metadata.leader_epoch(place))
            assert committed.leader_epoch > epoch
        await asyncio.to_thread(cluster.start, leader)

    run(work)


def moved_to(leader: int, epoch: int, port: int) -> ProduceResponse:
    """What a broker says that does not lead any more."""
    part = ProduceResponse.PartitionProduceResponse(
        index=0,
        error_code=errors.NOT_LEADER_OR_FOLLOWER.code,
        current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
    )
    topic = ProduceResponse.TopicProduceResponse(name="orders", partition_responses=[part])
    endpoint = ProduceResponse.NodeEndpoint(node_id=leader, host="127.0.0.1", port=port)
    return ProduceResponse(responses=[topic], node_endpoints=[endpoint])


@pytest.mark.parametrize(
    ("epoch_step", "is_named", "is_asked"),
    [(1, True, False), (0, True, True), (-1, True, True), (1, False, True)],
    ids=["newer", "the same", "older", "unknown"],
)
def test_a_leader_that_is_no_news_or_cannot_be_reached_is_asked_for(
    epoch_step: int, is_named: bool, is_asked: bool
) -> None:
    """A broker behind a proxy that refuses once and names another: the same broker, by its own port."""
    place = TopicPartition("orders", 0)

    async def work() -> None:
        async with TamperingProxy() as proxy:
            broker = Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
            await asyncio.to_thread(broker.start)
            host, _, port = broker.address_of("PLAINTEXT").rpartition(":")
            proxy.target = (host, int(port))
            settings = ProducerSettings(bootstrap_servers=(f"127.0.0.1:{proxy.port}",), retry_backoff_ms=10)
            try:
                async with Producer(settings) as producer:
                    await producer.send("orders", b"0")
                    known = producer.cluster
                    epoch = known.metadata.leader_epoch(place)
                    refused = 0

                    def refuse(asked: Asked, frame: bytes) -> bytes:
                        nonlocal refused
                        if asked.api_key != ApiKey.PRODUCE or refused:
                            return frame
                        refused += 1
                        answer = moved_to(77, epoch + epoch_step, int(port))
                        answer.responses[0].topic_id = known.metadata.topics["orders"].id
                        if not is_named:
                            answer.node_endpoints = []
                        correlation_id = int.from_bytes(frame[4:8], "big")
                        parts = encode_response(answer, asked.api_version, correlation_id=correlation_id)
                        return b"".join(bytes(part) for part in parts)

                    proxy.tamper = refuse
                    count = Count(known)
                    assert (await producer.send("orders", b"1")).offset == 1
                    assert refused == 1
                    assert bool(count.asked) == is_asked
                    assert known.leader_of(place) == (1 if is_asked else 77)
            finally:
                await asyncio.to_thread(broker.stop)

    run(work)
