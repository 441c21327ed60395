"""An idempotent producer: every batch has its number, and what may have been written is never written again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from talk import Talk

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import LostSequence
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.batch_reader import BatchReader
from barnabas.testing import Broker
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

PARTITIONS = 8


def test_a_partition_that_comes_while_an_identity_is_asked_for_waits_for_one(
    shared_broker: Broker, talk: Talk, name: str
) -> None:
    talk.create(name, partitions=PARTITIONS)
    servers = {"bootstrap.servers": shared_broker.bootstrap_servers}

    async def work() -> list[tuple[int, int, int]]:
        async with Producer(ProducerSettings.of(servers)) as producer:
            for partition in range(PARTITIONS):
                await producer.send_soon(name, b"x", partition=partition)
                await asyncio.sleep(0)  # the sender may begin with what is there
            await producer.flush()
        async with Cluster(Settings.of(servers)) as cluster:
            starts = {TopicPartition(name, partition): 0 for partition in range(PARTITIONS)}
            return [
                (batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence)
                async for batch in BatchReader(cluster, starts, until_end=True).read()
            ]

    batches = asyncio.run(work())
    assert len(batches) == PARTITIONS
    assert all(producer_id >= 0 for producer_id, _, _ in batches), batches
    assert {(epoch, sequence) for _, epoch, sequence in batches} == {(0, 0)}


class Forgetful:
    """A connection whose first answer is lost; the second says that the broker does not know the batch, though it
    does. So Kafka answers after a restart, from which it remembers the last batch of each producer alone."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def call(self, request: Any, response: type[Any], **options: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return await self._real.call(request, response, **options)
        self.calls += 1
        if self.calls != 2:
            answer = await self._real.call(request, response, **options)
            if self.calls == 1:
                raise PeerGone("the answer is lost")
            return answer
        (topic,) = request.topic_data
        row = ProduceResponse.PartitionProduceResponse(
            index=topic.partition_data[0].index,
            error_code=errors.OUT_OF_ORDER_SEQUENCE_NUMBER.code,
            base_offset=-1,
        )
        of_topic = ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        of_topic.partition_responses = [row]
        return ProduceResponse(responses=[of_topic])


def test_what_may_have_been_written_is_not_written_again_when_a_broker_has_forgotten_it(
    shared_broker: Broker, talk: Talk, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.create(name)

    async def work() -> None:
        settings = ProducerSettings.of({"bootstrap.servers": shared_broker.bootstrap_servers})
        async with Producer(settings) as producer:
            await producer.send(name, b"before", partition=0)
            leader = producer.cluster.leader_of(TopicPartition(name, 0))
            assert leader is not None
            forgetful = Forgetful(producer.cluster.connection(leader))
            monkeypatch.setattr(producer.cluster, "connection", lambda node, lane="": forgetful)
            with pytest.raises(LostSequence):
                await producer.send(name, b"doubtful", partition=0)
            monkeypatch.undo()
            await producer.send(name, b"after", partition=0)

    asyncio.run(work())
    assert [record.value for record in talk.read(name)] == [b"before", b"doubtful", b"after"]
