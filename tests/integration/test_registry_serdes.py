"""Our producer and consumer with typed records and our registry: registration, evolution, references, strategies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings, TopicPartition
from barnabas.client.errors import RegistryRefused
from barnabas.client.serdes import RegisteredAvro, RegisteredJson, Registry, Serde, topic_record_name
from barnabas.client.serdes.registry import Reference, Schema
from barnabas.testing import Broker, RegistryProcess


@dataclass
class Order:
    id: int
    item: str = "tea"


class Newer:
    """The same record with a field more, as another program has it."""

    @dataclass
    class Order:
        id: int
        item: str = "tea"
        count: int = 1


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    with Broker() as broker, RegistryProcess(broker.bootstrap_servers) as registry:
        yield broker.bootstrap_servers, registry.url


async def there_and_back(servers: str, topic: str, write: Serde[Any], read: Serde[Any], *contents: Any) -> list[Any]:
    async with Producer(ProducerSettings(bootstrap_servers=(servers,)), value=write) as producer:
        for each in contents:
            await producer.send(topic, each)
    async with Consumer(ConsumerSettings(bootstrap_servers=(servers,)), value=read) as consumer:
        await consumer.assign([TopicPartition(topic, 0)], until_end=True)
        return [record.value async for record in consumer]


def test_typed_records_are_registered_and_evolve(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    old, new = RegisteredAvro(registry, Order), RegisteredAvro(registry, Newer.Order)
    found = asyncio.run(there_and_back(servers[0], "evolving", old, new, Order(1), Order(2, "cup")))
    assert found == [Newer.Order(1, "tea", 1), Newer.Order(2, "cup", 1)]
    found = asyncio.run(there_and_back(servers[0], "evolving", new, old, Newer.Order(3, "pot", 9)))
    assert found[-1] == Order(3, "pot")
    assert asyncio.run(registry.versions("evolving-value")) == [1, 2]


def test_confluents_deserializer_reads_what_our_serde_wrote(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    write = RegisteredAvro(registry, Order, subject=topic_record_name)
    found: list[bytes] = []

    async def work() -> None:
        async with Producer(ProducerSettings(bootstrap_servers=(servers[0],)), value=write) as producer:
            await producer.send("foreign", Order(7))
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers[0],))) as consumer:
            await consumer.assign([TopicPartition("foreign", 0)], until_end=True)
            found.extend([record.value or b"" async for record in consumer])

    asyncio.run(work())
    assert asyncio.run(registry.versions("foreign-Order")) == [1]
    with SchemaRegistryClient({"url": servers[1]}) as client:
        context = SerializationContext("foreign", MessageField.VALUE, [])
        assert AvroDeserializer(client)(found[0], context) == {"id": 7, "item": "tea"}


def test_a_schema_uses_one_of_another_subject(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    color = json.dumps({"type": "enum", "name": "Color", "symbols": ["RED"]})
    paint = {"type": "record", "name": "Paint", "fields": [{"name": "color", "type": "Color"}]}
    asyncio.run(registry.register("color", Schema(color)))
    serde = RegisteredAvro(registry, paint, references=[Reference("Color", "color", 1)])
    assert asyncio.run(there_and_back(servers[0], "paint", serde, serde, {"color": "RED"})) == [{"color": "RED"}]


def test_json_and_schemas_that_are_not_there(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    serde = RegisteredJson(registry, Order)
    assert asyncio.run(there_and_back(servers[0], "in-json", serde, serde, Order(1))) == [Order(1)]
    strict = RegisteredAvro(registry, Order, auto_register=False)
    with pytest.raises(RegistryRefused, match="not found"):
        asyncio.run(there_and_back(servers[0], "unknown", strict, strict, Order(1)))
