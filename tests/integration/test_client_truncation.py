"""Records that were read and are not there any more (KIP-320): the leader says so, and the consumer hears of it.

The broker is a real one behind a proxy that puts other words into its mouth; how it comes to that in a cluster is in
``test_client_leaders.py``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tampering_proxy import Asked, TamperingProxy

from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings, TopicPartition
from barnabas.client.errors import LogTruncated, OffsetGone
from barnabas.client.group.commits import OffsetAndMetadata
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_response, encode_response
from barnabas.wire.message import Message
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse

SECONDS_MAX = 60.0
TOPIC = "orders"
PLACE = TopicPartition(TOPIC, 0)
COUNT = 10
EpochEnd = OffsetForLeaderEpochResponse.EpochEndOffset


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await work()

    asyncio.run(bounded())


class Mouth:
    """Changes what the broker answers: the next fetch diverges, and epochs end elsewhere."""

    def __init__(self, proxy: TamperingProxy) -> None:
        proxy.tamper = self._tamper
        self.asked: Counter[int] = Counter()
        self.diverging = 0  # fetches that are still to be told so
        self.ends: list[EpochEnd] = []  # the answers to give; then the broker's own

    def _tamper(self, asked: Asked, frame: bytes) -> bytes:
        self.asked[asked.api_key] += 1
        if asked.api_key == ApiKey.FETCH and self.diverging:
            self.diverging -= 1
            correlation_id, fetched = decode_response(FetchResponse, asked.api_version, frame[4:])
            topic = fetched.responses[0] if fetched.responses else FetchResponse.FetchableTopicResponse()
            topic.topic_id = topic.topic_id if fetched.responses else self.topic_id
            part = FetchResponse.PartitionData(partition_index=0, records=b"")
            part.diverging_epoch = FetchResponse.EpochEndOffset(epoch=0, end_offset=4)
            topic.partitions = [part]
            fetched.responses = [topic]
            return framed(fetched, asked, correlation_id)
        if asked.api_key == ApiKey.OFFSET_FOR_LEADER_EPOCH and self.ends:
            correlation_id, told = decode_response(OffsetForLeaderEpochResponse, asked.api_version, frame[4:])
            told.topics[0].partitions = [self.ends.pop(0)]
            return framed(told, asked, correlation_id)
        return frame

    topic_id = bytes(16)


def framed(message: Message, asked: Asked, correlation_id: int) -> bytes:
    return b"".join(bytes(part) for part in encode_response(message, asked.api_version, correlation_id=correlation_id))


@asynccontextmanager
async def behind_mouth(**more: Any) -> AsyncIterator[tuple[Consumer[bytes, bytes], Producer[bytes, bytes], Mouth]]:
    """A consumer that has read ten records."""
    async with TamperingProxy() as proxy:
        broker = Broker(settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
        await asyncio.to_thread(broker.start)
        try:
            host, _, port = broker.address_of("PLAINTEXT").rpartition(":")
            proxy.target = (host, int(port))
            common: dict[str, Any] = {"bootstrap_servers": (f"127.0.0.1:{proxy.port}",), "retry_backoff_ms": 10}
            async with (
                Producer(ProducerSettings(**common)) as producer,
                Consumer(ConsumerSettings(**common, fetch_max_wait_ms=50, group_id="g", **more)) as consumer,
            ):
                await producer.send_many(TOPIC, [(None, b"%d" % number) for number in range(COUNT)])
                await consumer.assign([PLACE])
                seen = 0
                while seen < COUNT:
                    seen += len(await consumer.poll())
                mouth = Mouth(proxy)
                mouth.topic_id = consumer.cluster.metadata.topics[TOPIC].id
                yield consumer, producer, mouth
        finally:
            await asyncio.to_thread(broker.stop)


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_with_a_policy_reading_goes_on_where_the_logs_part(policy: str) -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset=policy) as (consumer, _, mouth):
            mouth.diverging, mouth.ends = 1, [EpochEnd(leader_epoch=0, end_offset=4)]
            assert [record.offset for record in await consumer.poll()] == list(range(4, COUNT))
            assert mouth.asked[ApiKey.OFFSET_FOR_LEADER_EPOCH] == 1

    run(work)


def test_without_a_policy_the_error_says_where_they_part_until_somebody_seeks() -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset="none") as (consumer, _, mouth):
            mouth.diverging = 1
            mouth.ends = [EpochEnd(leader_epoch=0, end_offset=4), EpochEnd(leader_epoch=0, end_offset=4)]
            for _ in range(2):
                with pytest.raises(LogTruncated) as caught:
                    await consumer.poll()
                error = caught.value
                assert isinstance(error, OffsetGone)
                assert not error.retriable
                assert (error.partition, error.position) == (PLACE, COUNT)
                assert (error.divergent_offset, error.leader_epoch) == (4, 0)
            assert error.divergent_offset is not None
            assert error.leader_epoch is not None
            consumer.seek(PLACE, OffsetAndMetadata(error.divergent_offset, leader_epoch=error.leader_epoch))
            assert [record.offset for record in await consumer.poll()] == list(range(4, COUNT))

    run(work)


@pytest.mark.parametrize(("policy", "start"), [("earliest", 0), ("none", None)])
def test_a_leader_that_cannot_tell_is_a_position_that_is_gone(policy: str, start: int | None) -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset=policy) as (consumer, _, mouth):
            mouth.diverging, mouth.ends = 1, [EpochEnd()]
            if start is None:
                with pytest.raises(LogTruncated) as caught:
                    await consumer.poll()
                assert caught.value.divergent_offset is None
            else:
                assert (await consumer.poll())[0].offset == start

    run(work)


def test_a_broker_that_errs_or_only_lags_behind_truncates_nothing() -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset="none") as (consumer, producer, mouth):
            mouth.diverging = 3  # the broker itself says afterwards that all is well
            mouth.ends = [
                EpochEnd(error_code=errors.NOT_LEADER_OR_FOLLOWER.code),
                EpochEnd(error_code=errors.UNKNOWN_LEADER_EPOCH.code),
                EpochEnd(partition=7, leader_epoch=0, end_offset=1),  # it was not asked about that one
            ]
            await producer.send(TOPIC, b"more")
            assert [record.offset for record in await consumer.poll()] == [COUNT]
            assert mouth.asked[ApiKey.OFFSET_FOR_LEADER_EPOCH] >= 6

    run(work)


def test_a_reader_who_is_not_allowed_to_ask_hears_of_it() -> None:
    async def work() -> None:
        async with behind_mouth() as (consumer, _, mouth):
            mouth.diverging, mouth.ends = 1, [EpochEnd(error_code=errors.TOPIC_AUTHORIZATION_FAILED.code)]
            with pytest.raises(Exception, match="uthori"):
                await consumer.poll()

    run(work)


def test_positions_are_stored_with_their_epoch_and_validated_when_they_are_read_back() -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset="earliest", enable_auto_commit=False) as (consumer, _, mouth):
            assert consumer.positions == {PLACE: OffsetAndMetadata(COUNT, "", 0)}
            await consumer.commit()
            assert await consumer.committed([PLACE]) == {PLACE: OffsetAndMetadata(COUNT, "", 0)}
            await consumer.commit({PLACE: 5})
            assert await consumer.committed([PLACE]) == {PLACE: OffsetAndMetadata(5, "", 0)}
            await consumer.commit({PLACE: OffsetAndMetadata(6)})  # what is told is stored as it is
            assert await consumer.committed([PLACE]) == {PLACE: OffsetAndMetadata(6, "", -1)}
            await consumer.commit({PLACE: OffsetAndMetadata(8, "note", 0)})
            assert mouth.asked[ApiKey.OFFSET_FOR_LEADER_EPOCH] == 0
            mouth.ends = [EpochEnd(leader_epoch=0, end_offset=3)]
            await consumer.subscribe([TOPIC])
            assert [record.offset for record in await consumer.poll()] == list(range(3, COUNT))
            assert mouth.asked[ApiKey.OFFSET_FOR_LEADER_EPOCH] == 1

    run(work)


def test_an_offset_of_a_later_epoch_than_the_cluster_has_is_not_believed_for_ever() -> None:
    async def work() -> None:
        async with behind_mouth(auto_offset_reset="none") as (consumer, _, mouth):
            consumer.seek(PLACE, OffsetAndMetadata(5, leader_epoch=7))
            with pytest.raises(LogTruncated):
                await consumer.poll()
            assert mouth.asked[ApiKey.METADATA] > 2  # it might have been the metadata that was old
            consumer.seek(PLACE, 5)
            assert (await consumer.poll())[0].offset == 5

    run(work)
