"""Confluent's Python client and serializers, unchanged, work with the registry: they are the judge of its API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from barnabas.testing import Broker, RegistryProcess

USER = json.dumps({"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]})
USER_WITH_AGE = json.dumps(
    {
        "type": "record",
        "name": "User",
        "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int", "default": 0}],
    }
)
USER_WITH_NEED = json.dumps(
    {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": "int"}]}
)
PERSON = json.dumps({"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}})


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryProcess]:
    with Broker() as broker, RegistryProcess(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as found:
        yield found


def avro(text: str = USER) -> Schema:
    return Schema(text, "AVRO")


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


def refused(code: int) -> Any:
    return pytest.raises(SchemaRegistryError, match=f"SR code {code}")


def test_the_same_schema_keeps_its_id_and_versions_count_from_one(client: SchemaRegistryClient) -> None:
    first = client.register_schema("ids-1", avro())
    assert client.register_schema("ids-1", avro()) == first
    assert client.register_schema("ids-2", avro(json.dumps(json.loads(USER), indent=4))) == first
    second = client.register_schema("ids-1", avro(USER_WITH_AGE))
    assert second != first
    assert client.get_versions("ids-1") == [1, 2]
    assert client.get_latest_version("ids-1").schema_id == second
    assert json.loads(client.get_schema(first).schema_str or "") == json.loads(USER)
    found = client.lookup_schema("ids-1", avro())
    assert (found.subject, found.version, found.schema_id) == ("ids-1", 1, first)
    assert {"ids-1", "ids-2"} <= set(client.get_subjects())
    assert {each.subject for each in client.get_schema_versions(first)} >= {"ids-1", "ids-2"}


def test_an_incompatible_version_is_refused_until_the_level_allows_it(client: SchemaRegistryClient) -> None:
    client.register_schema("levels", avro())
    assert client.test_compatibility("levels", avro(USER_WITH_AGE))
    assert not client.test_compatibility("levels", avro(USER_WITH_NEED))
    with refused(409):
        client.register_schema("levels", avro(USER_WITH_NEED))
    client.set_compatibility("levels", "NONE")
    assert client.get_compatibility("levels") == "NONE"
    client.register_schema("levels", avro(USER_WITH_NEED))
    client.delete_config("levels")
    with refused(40408):
        client.get_config("levels")
    assert client.get_compatibility() == "BACKWARD"
    with refused(42203):
        client.set_compatibility("levels", "SIDEWAYS")


def test_deletes_are_soft_first_and_refused_while_referenced(client: SchemaRegistryClient) -> None:
    client.register_schema("gone", avro())
    with refused(40405):
        client.delete_subject("gone", permanent=True)
    assert client.delete_subject("gone") == [1]
    assert "gone" not in client.get_subjects()
    with refused(40404):
        client._rest_client.delete("subjects/gone")
    assert client.delete_subject("gone", permanent=True) == [1]
    with refused(40401):
        client.get_versions("gone")
    client.register_schema("base", avro(json.dumps({"type": "enum", "name": "Color", "symbols": ["RED"]})))
    user = json.dumps({"type": "record", "name": "Paint", "fields": [{"name": "color", "type": "Color"}]})
    reference = SchemaReference("Color", "base", 1)
    paint = client.register_schema("paint", Schema(user, "AVRO", [reference]))
    assert client.get_schema(paint).references == [reference]
    with refused(42206):
        client.delete_version("base", 1)


def test_what_is_not_there_has_its_own_code(client: SchemaRegistryClient) -> None:
    client.register_schema("known", avro())
    for code, call in (
        (40401, lambda: client.get_latest_version("unknown")),
        (40402, lambda: client.get_version("known", 7)),
        (40403, lambda: client.get_schema(1_000_000)),
        (40403, lambda: client.lookup_schema("known", avro(USER_WITH_NEED))),
        (42202, lambda: client._rest_client.get("subjects/known/versions/zero")),
        (42201, lambda: client.register_schema("known", avro('{"type":"nothing"}'))),
        (40409, lambda: client.get_mode("known")),
    ):
        with refused(code):
            call()


def test_modes_and_contexts(client: SchemaRegistryClient) -> None:
    assert client.get_global_mode() == "READWRITE"
    client.update_mode("frozen", "READONLY")
    with refused(42205):
        client.register_schema("frozen", avro())
    client.update_mode("imported", "IMPORT")
    answer = client._rest_client.post(
        "subjects/imported/versions", {"schema": USER_WITH_NEED, "id": 4711, "version": 3}
    )
    assert answer["id"] == 4711
    assert client.get_versions("imported") == [3]
    assert client.get_schema(4711) is not None
    in_team = client.register_schema(":.team:orders", avro())
    assert in_team == 1, "every context has ids of its own"
    assert client.get_contexts() == [".", ".team"]
    assert client._rest_client.get("contexts/.team/subjects") == [":.team:orders"]
    assert client._rest_client.get("contexts/.team/subjects/orders/versions") == [1]


def test_avro_records_make_the_round_trip(client: SchemaRegistryClient) -> None:
    write = AvroSerializer(client, USER)
    data = write({"name": "ann"}, value_of("avro"))
    assert data is not None
    assert data[0] == 0
    assert int.from_bytes(data[1:5], "big") == client.get_latest_version("avro-value").schema_id
    assert AvroDeserializer(client, USER_WITH_AGE)(data, value_of("avro")) == {"name": "ann", "age": 0}


def test_json_records_make_the_round_trip(client: SchemaRegistryClient) -> None:
    data = JSONSerializer(PERSON, client)({"name": "ann"}, value_of("json"))
    assert JSONDeserializer(PERSON, schema_registry_client=client)(data, value_of("json")) == {"name": "ann"}
    assert client.get_latest_version("json-value").schema.schema_type == "JSON"


def order_class() -> Any:
    """A message class with an import, as protoc would generate it."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(
        name="at", number=2, type="TYPE_MESSAGE", type_name=".google.protobuf.Timestamp", label="LABEL_OPTIONAL"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_records_make_the_round_trip(client: SchemaRegistryClient) -> None:
    """The serializer sends descriptors, and those of imports first; what is kept is the text of a file."""
    order = order_class()
    sent = order(id=7)
    conf = {"use.deprecated.format": False, "skip.known.types": False}
    data = ProtobufSerializer(order, client, conf)(sent, value_of("protobuf"))
    read = ProtobufDeserializer(order, {"use.deprecated.format": False}, client)
    assert read(data, value_of("protobuf")) == sent
    kept = client.get_latest_version("protobuf-value").schema
    assert kept.schema_type == "PROTOBUF"
    assert "message Order {" in (kept.schema_str or "")
    assert [each.name for each in kept.references or []] == ["google/protobuf/timestamp.proto"]
    assert client.register_schema("protobuf-value", kept) == int.from_bytes(data[1:5], "big")


def test_ids_travel_in_headers(client: SchemaRegistryClient) -> None:
    """Confluent's header format names a schema by its guid."""
    write = AvroSerializer(client, USER, conf={"schema.id.serializer": header_schema_id_serializer})
    context = value_of("headers")
    data = write({"name": "annabel lee"}, context)
    assert [name for name, _ in context.headers or []] == ["__value_schema_id"]
    assert AvroDeserializer(client)(data, context) == {"name": "annabel lee"}
