"""A failure of ours while a request waits: its client is hung up on, and nobody else is concerned."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from barnabas.broker.handlers import fetch as fetching
from barnabas.broker.requests.request import Request
from barnabas.storage.log import PartitionLog
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel, PeerGone
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records import encode_batch


async def connect() -> Channel:
    return await Channel.connect("node1", BROKER_PORT, client_id="test")


async def make_topic(channel: Channel) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    (row,) = (await channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)).topics
    assert row.error_code == 0, row.error_message
    return row.topic_id


def fetch(topic_id: Any) -> FetchRequest:
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=[wanted])
    return FetchRequest(max_wait_ms=5000, min_bytes=1, topics=[topic])


def produce(topic_id: Any, **more: Any) -> ProduceRequest:
    batch = encode_batch([(1, b"key", b"value", ())])
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic], **more)


def broken(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("a mistake of ours")


@pytest.mark.parametrize("has_news", [True, False])
def test_a_fetch_that_fails_while_it_waits_is_hung_up_on(
    has_news: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=1)
        await cluster.start_all()
        reader, writer = await connect(), await connect()
        topic_id = await make_topic(writer)
        waiting = asyncio.ensure_future(reader.send(fetch(topic_id), 17))
        await asyncio.sleep(0.1)
        with monkeypatch.context() as patch:
            if has_news:
                patch.setattr(PartitionLog, "read", broken)
                answer = await writer.send(produce(topic_id), 13)
                assert answer.responses[0].partition_responses[0].error_code == 0
            else:
                patch.setattr(fetching._Fetch, "response", broken)
            async with asyncio.timeout(10):
                with pytest.raises(PeerGone):
                    await waiting
        again = await connect()
        if not has_news:
            await writer.send(produce(topic_id), 13)
        assert (await again.send(fetch(topic_id), 17)).responses
        for channel in (reader, writer, again):
            channel.close()
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=300)
    assert "deferred answer failed" in caplog.text
    assert "a mistake of ours" in caplog.text


def test_a_produce_whose_answer_fails_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def whole() -> None:
        cluster = SimulatedCluster(1, brokers=1)
        await cluster.start_all()
        writer = await connect()
        topic_id = await make_topic(writer)
        (partition,) = [each for each in cluster.nodes[1].services.replicas if each.id.topic == "t"]
        with monkeypatch.context() as patch:
            # It waits for what never comes until its time is up, and then cannot be encoded.
            patch.setattr(PartitionLog, "advance_high_watermark", lambda *_: False)
            patch.setattr(type(partition), "when_acknowledged", lambda *_: None)
            sending = asyncio.ensure_future(writer.send(produce(topic_id, transactional_id="x"), 13))
            await asyncio.sleep(0.1)
            patch.setattr(Request, "encode", broken)
            async with asyncio.timeout(10):
                with pytest.raises(PeerGone):
                    await sending
        writer.close()
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=300)
    assert "deferred answer failed" in caplog.text
