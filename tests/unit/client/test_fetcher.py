"""When the fetcher looks again, and what it asks for while records are being read."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Broker, ClusterMetadata, PartitionMetadata, TopicMetadata
from barnabas.client.errors import TimedOut
from barnabas.client.fetch.cursor import Cursor
from barnabas.client.fetch.fetcher import Fetcher
from barnabas.client.fetch.lanes import FETCH_LANE, SIDE_LANE
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.transport.backoff import Backoff
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records import encode_batch

PAUSE_MS = 1
ANSWER_SECONDS = 0.02  # longer than the pause before the next attempt


class SlowToRefuse:
    """A cluster that cannot be reached, and takes its time to say so."""

    def __init__(self) -> None:
        self.asked = 0

    async def topic(self, name: str, **_: Any) -> None:
        self.asked += 1
        await asyncio.sleep(ANSWER_SECONDS)
        raise TimedOut("nobody answers")

    def invalidate(self) -> None:
        pass

    def backoff(self) -> Backoff:
        return Backoff(PAUSE_MS, PAUSE_MS, lambda limit: 0)


def test_a_refusal_that_took_longer_than_the_pause_is_followed_by_another_attempt() -> None:
    async def work() -> int:
        cluster: Any = SlowToRefuse()
        place = TopicPartition("orders", 0)
        cursor = Cursor(place, ConsumerSettings())
        cursor.seek(0)
        running = asyncio.create_task(Fetcher(cluster, ConsumerSettings(), {place: cursor}).run())
        async with asyncio.timeout(5):
            while cluster.asked < 3:
                await asyncio.sleep(ANSWER_SECONDS)
        running.cancel()
        await asyncio.wait([running])
        return int(cluster.asked)

    assert asyncio.run(work()) >= 3


ORDERS, IDLE = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPIC_ID = Uuid(b"t" * 16)
RECORDS_PER_CHUNK = 10


class OneLeader(Cluster):
    """Has records of partition 0 without end; a fetch of partition 1 alone waits for as long as it may."""

    def __init__(self) -> None:
        super().__init__(Settings(bootstrap_servers=("a:1",)))
        partitions = tuple(PartitionMetadata(index, 1, 0, (1,), (1,), (), errors.NONE) for index in range(2))
        self.metadata = ClusterMetadata(
            {1: Broker(1, "a", 1)}, {"orders": TopicMetadata("orders", TOPIC_ID, False, partitions, errors.NONE)}
        )
        self.asked: list[tuple[str, list[int]]] = []  # on which lane for which partitions

    def known_topic(self, name: str) -> TopicMetadata | None:
        return self.metadata.topics[name]

    async def call(self, broker: int, message: Any, *_: Any, lane: str = "", **__: Any) -> Any:
        request: FetchRequest = message.build(13)
        wanted = [part for topic in request.topics for part in topic.partitions]
        self.asked.append((lane, [part.partition for part in wanted]))
        full = next((part for part in wanted if part.partition == ORDERS.partition), None)
        await asyncio.sleep(0 if full is not None else request.max_wait_ms / 1000)
        partitions = []
        if full is not None:
            rows = [(0, None, b"%d" % number, ()) for number in range(RECORDS_PER_CHUNK)]
            records = memoryview(encode_batch(rows, base_offset=full.fetch_offset, leader_epoch=0))
            partitions = [FetchResponse.PartitionData(partition_index=ORDERS.partition, records=records)]
        topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)
        return FetchResponse(responses=[topic])


def cursors_of(*places: TopicPartition) -> dict[TopicPartition, Cursor]:
    cursors = {place: Cursor(place, ConsumerSettings()) for place in places}
    for cursor in cursors.values():
        cursor.seek(0)
    return cursors


def test_the_next_records_are_asked_for_before_anybody_hears_of_those_that_came() -> None:
    """Whoever decodes on the loop would keep the broker waiting otherwise."""

    async def work() -> None:
        cluster = OneLeader()
        fetcher = Fetcher(cluster, ConsumerSettings(), cursors_of(ORDERS))
        running = asyncio.create_task(fetcher.run())
        async with asyncio.timeout(5):
            await fetcher.news.wait()
        assert len(cluster.asked) == 2
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(work())


def test_a_partition_without_news_holds_up_no_other() -> None:
    """Its fetch waits at the broker; what another partition has meanwhile got room for is asked for beside it."""
    chunks = 20

    async def work() -> None:
        cluster = OneLeader()
        cursors = cursors_of(ORDERS, IDLE)
        fetcher = Fetcher(cluster, ConsumerSettings(fetch_max_wait_ms=60_000), cursors)
        running = asyncio.create_task(fetcher.run())
        taken = 0
        async with asyncio.timeout(5):
            while taken < chunks * RECORDS_PER_CHUNK:
                await asyncio.sleep(0.001)  # busy with what it got, while more comes
                taken += len(cursors[ORDERS].take(RECORDS_PER_CHUNK))
                fetcher.wake()
        running.cancel()
        await asyncio.wait([running])
        assert (FETCH_LANE, [IDLE.partition]) in cluster.asked
        assert {tuple(places) for lane, places in cluster.asked if lane == SIDE_LANE} == {(ORDERS.partition,)}

    asyncio.run(work())
