"""A topic as a table between a start and an end, and clients whose keys and values have types."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

import barnabas
from barnabas import Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, Start, TopicPartition
from barnabas.client import blocking
from barnabas.client.errors import Undecodable
from barnabas.client.serdes import STR, Struct
from barnabas.testing import Broker


@dataclass
class Order:
    id: int
    item: str


def make(broker: Broker, name: str, partitions: int = 1) -> None:
    with blocking.Admin(Settings(bootstrap_servers=(broker.bootstrap_servers,))) as admin:
        admin.create_topic(NewTopic(name, partition_count=partitions))


def test_a_topic_is_read_between_a_start_and_an_end(shared_broker: Broker, name: str) -> None:
    servers = shared_broker.bootstrap_servers
    make(shared_broker, name, 2)
    with blocking.Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
        for index in range(20):
            producer.send(name, b"%d" % (index // 2), partition=index % 2, timestamp_ms=1_000 * (index // 2))
    topic = blocking.Topic(name, bootstrap_servers=[servers])
    assert topic.to_arrow().num_rows == 20
    found = topic.to_arrow(Start.at_time(2_500), Start.at_time(5_000), with_headers=True)
    assert found.sort_by([("partition", "ascending"), ("offset", "ascending")])["value"].to_pylist() == [b"3", b"4"] * 2
    assert topic.to_arrow({1: Start.at(2)}, {1: Start.at(4)})["offset"].to_pylist() == [2, 3]
    assert topic.to_arrow(Start.before_last(1), Start.before_last(0)).num_rows == 2
    assert topic.to_arrow(Start.at(8), Start.at(8)).num_rows == 0
    assert len(asyncio.run(barnabas.Topic(name, ConsumerSettings(bootstrap_servers=(servers,))).to_arrow())) == 20


def test_objects_are_sent_and_read_as_what_they_are(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)
    make(shared_broker, name)

    async def work() -> None:
        async with Producer(ProducerSettings(bootstrap_servers=servers), key=STR, value=Struct(Order)) as producer:
            for number in range(10):
                await producer.send_soon(name, Order(number, "tea"), key=f"k{number}")
            await producer.send(name, None, key="gone")
        async with Consumer(ConsumerSettings(bootstrap_servers=servers), key=STR, value=Struct(Order)) as consumer:
            await consumer.assign([TopicPartition(name, 0)], until_end=True)
            records = [record async for record in consumer]
        assert [record.value for record in records] == [*(Order(number, "tea") for number in range(10)), None]
        assert records[-1].key == "gone"

    asyncio.run(work())


def test_a_record_that_is_none_can_be_skipped(shared_broker: Broker, name: str) -> None:
    servers = (shared_broker.bootstrap_servers,)
    make(shared_broker, name)
    place = TopicPartition(name, 0)
    with blocking.Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
        producer.send_many(name, [(None, b'{"id":1,"item":"a"}'), (None, b"poison"), (None, b'{"id":3,"item":"c"}')])
    with blocking.Consumer(ConsumerSettings(bootstrap_servers=servers), value=Struct(Order)) as consumer:
        consumer.assign([place], until_end=True)
        assert [record.value for record in consumer.poll()] == [Order(1, "a")]
        for _ in range(2):  # it is not skipped in silence
            with pytest.raises(Undecodable) as caught:
                consumer.poll(timeout_ms=10_000)
            assert (caught.value.partition, caught.value.offset) == (place, 1)
            assert consumer.position(place) == 1
        consumer.seek(place, 2)
        assert [record.value for record in consumer.poll()] == [Order(3, "c")]
        assert consumer.is_at_end
