"""Our producer and consumer with typed records and our registry: registration, evolution, references, strategies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import barnabas
from barnabas import Consumer, ConsumerSettings, Producer, ProducerSettings, TopicPartition
from barnabas.client.errors import RegistryRefused, Undecodable
from barnabas.client.serdes import (
    RegisteredAvro,
    RegisteredJson,
    RegisteredProtobuf,
    Registry,
    Serde,
    record_name,
    topic_record_name,
)
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


class Item(msgspec.Struct):
    name: str
    sizes: list[int] = []
    note: str | None = None


def a_message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="small.proto", package="shop", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Small")
    message.field.add(name="count", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Small"))


@pytest.mark.parametrize("kind", ["avro", "avro of a struct", "json", "protobuf"])
def test_the_id_of_a_schema_may_be_in_a_header(servers: tuple[str, str], kind: str) -> None:
    registry = Registry(servers[1])
    topic = f"headers-{kind.replace(' ', '-')}"
    small = a_message_class()
    writers: dict[str, tuple[Serde[Any], Serde[Any], Any]] = {
        "avro": (
            RegisteredAvro(registry, Order, id_in="header"),
            RegisteredAvro(registry, Newer.Order),
            Order(1, "a tea pot"),  # Confluent's deserializer refuses fewer than six bytes, wherever the id is
        ),
        "avro of a struct": (
            RegisteredAvro(registry, Item, id_in="header"),
            RegisteredAvro(registry, Item),
            Item("a", [1]),
        ),
        "json": (RegisteredJson(registry, Item, id_in="header"), RegisteredJson(registry, Item), Item("a", [1])),
        "protobuf": (
            RegisteredProtobuf(registry, small, id_in="header"),
            RegisteredProtobuf(registry, small),
            small(count=5),
        ),
    }
    write, read, content = writers[kind]
    found = asyncio.run(there_and_back(servers[0], topic, write, read, content))
    assert found == [Newer.Order(1, "a tea pot") if kind == "avro" else content]

    async def raw() -> Any:
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers[0],))) as consumer:
            await consumer.assign([TopicPartition(topic, 0)], until_end=True)
            (record,) = [record async for record in consumer]
            return record

    record = asyncio.run(raw())
    assert [(name, len(header), header[0]) for name, header in record.headers] == [
        ("__value_schema_id", 19 if kind == "protobuf" else 17, 1)
    ]
    context = SerializationContext(topic, MessageField.VALUE, list(record.headers))
    with SchemaRegistryClient({"url": servers[1]}) as client:
        if kind == "avro":
            assert AvroDeserializer(client)(record.value, context) == {"id": 1, "item": "a tea pot"}
        if kind == "protobuf":
            decode = ProtobufDeserializer(small, {"use.deprecated.format": False}, client)
            assert decode(record.value, context) == content


def test_a_header_that_names_no_schema_is_the_records_fault(servers: tuple[str, str]) -> None:
    serde = RegisteredAvro(Registry(servers[1]), Order)

    async def work(header: bytes) -> None:
        topic = f"bad-header-{len(header)}"
        async with Producer(ProducerSettings(bootstrap_servers=(servers[0],))) as producer:
            await producer.send(topic, b"x", headers=[("__value_schema_id", header)])
        async with Consumer(ConsumerSettings(bootstrap_servers=(servers[0],)), value=serde) as consumer:
            await consumer.assign([TopicPartition(topic, 0)], until_end=True)
            _ = [record async for record in consumer]

    for header in (b"\2", b"\1short", b"\1" + bytes(16)):
        with pytest.raises(Undecodable):
            asyncio.run(work(header))


def test_one_schema_wherever_it_is_used(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    for topic in ("here", "there"):
        serde = RegisteredAvro(registry, Item, subject=record_name)
        assert asyncio.run(there_and_back(servers[0], topic, serde, serde, Item("a"))) == [Item("a")]
    assert asyncio.run(registry.versions("Item")) == [1]


def test_a_topic_is_read_as_typed_columns(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    old, new = RegisteredAvro(registry, Order), RegisteredAvro(registry, Newer.Order)
    asyncio.run(there_and_back(servers[0], "columns", old, old, Order(1), Order(2, "cup")))
    asyncio.run(there_and_back(servers[0], "columns", new, new, Newer.Order(3, "pot", 9)))
    options: dict[str, Any] = {"bootstrap_servers": servers[0], "registry": servers[1]}
    table = barnabas.read("columns", schema="latest", **options)
    assert table.select(["id", "item", "count"]).to_pylist() == [
        {"id": 1, "item": "tea", "count": 1},
        {"id": 2, "item": "cup", "count": 1},
        {"id": 3, "item": "pot", "count": 9},
    ]
    assert table["_offset"].to_pylist() == [0, 1, 2]
    only = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "string"}]}
    for schema in (only, json.dumps(only)):
        assert barnabas.read("columns", schema=schema, **options)["item"].to_pylist() == ["tea", "cup", "pot"]
    assert barnabas.read("columns", schema=Order, **options).column_names[:2] == ["id", "item"]


def test_a_bad_value_is_named_or_skipped(servers: tuple[str, str]) -> None:
    registry = Registry(servers[1])
    serde = RegisteredAvro(registry, Order)
    asyncio.run(there_and_back(servers[0], "spoiled", serde, serde, Order(1)))

    async def spoil() -> None:
        async with Producer(ProducerSettings(bootstrap_servers=(servers[0],))) as producer:
            await producer.send("spoiled", b"spoiled")

    asyncio.run(spoil())
    options: dict[str, Any] = {"bootstrap_servers": servers[0], "registry": servers[1], "schema": "latest"}
    with pytest.raises(Undecodable, match="spoiled-0 at offset 1: there is no schema id in front"):
        barnabas.read("spoiled", **options)
    assert barnabas.read("spoiled", on_bad_record="skip", **options)["id"].to_pylist() == [1]
    assert barnabas.read("spoiled", **options | {"end": barnabas.Start.at(0)}).num_rows == 0
