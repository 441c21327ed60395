"""Every batch of an idempotent producer has its number, also of partitions that come while the producer gets its id."""

from __future__ import annotations

import asyncio

from talk import Talk

from barnabas.cli.batch_reader import BatchReader
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.client.producer_settings import ProducerSettings
from barnabas.client.settings import Settings
from barnabas.model.ids import TopicPartition
from barnabas.testing import Broker

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
