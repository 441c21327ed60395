"""Applications of Streams with values in Avro, Protocol Buffers and JSON Schema; Confluent's client is the judge."""

from __future__ import annotations

import socket
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.wrappers_pb2 import StringValue

from barnabas.client.errors import RegistryUnreachable
from barnabas.streams import App, Avro, DeadLetter, Driver, JsonSchema, Protobuf
from barnabas.streams.serdes import Serde
from barnabas.testing.plugin import Drive
from barnabas.testing.registry import RegistryProcess


@dataclass
class Order:
    customer: str
    total: int


class Sum(msgspec.Struct):
    total: int


def copied(serde: Serde[Any]) -> App:
    """Repartitions the values, keeps them in a store and writes them."""
    app = App("copied", on_error=DeadLetter("dead"))
    stream = app.stream("in", value=serde)
    stream.select_key(lambda key, value: key, key=str).to_table(store="rows").to_stream().to("out")
    return app


def written(driver: Driver, topic: str, judge: Any) -> Any:
    (row,) = driver.read_rows(topic)
    return judge(row.value, SerializationContext(topic, MessageField.VALUE))


def test_what_an_application_writes_is_read_by_confluents_client(
    schema_registry: RegistryProcess, drive: Drive
) -> None:
    url = schema_registry.url
    with SchemaRegistryClient({"url": url}) as client:
        check(url, client, drive)


def check(url: str, client: SchemaRegistryClient, drive: Drive) -> None:
    cases: list[tuple[Serde[Any], Any, Any, Any]] = [
        (Avro(Order, registry=url), Order("ann", 5), AvroDeserializer(client), asdict),
        (
            JsonSchema(Sum, registry=url),
            Sum(5),
            JSONDeserializer(None, schema_registry_client=client),
            msgspec.to_builtins,
        ),
        (
            Protobuf(StringValue, registry=url),
            StringValue(value="a"),
            ProtobufDeserializer(StringValue, {"use.deprecated.format": False}),
            lambda message: message,
        ),
    ]
    for serde, value, judge, plain in cases:
        for subject in client.get_subjects():
            client.delete_subject(subject)
        driver = drive(copied(serde))
        driver.send("in", value, key="k")
        assert driver.store("rows") == {"k": value}
        assert written(driver, "out", judge) == plain(value)
        assert set(client.get_subjects()) >= {
            "in-value",
            "out-value",
            "copied-rows-changelog-value",
            "copied-KSTREAM-TOTABLE-0000000002-repartition-value",
        }
        driver.send_bytes("in", b"k", b"\0\0\0\0\xffno such schema")
        assert len(driver.read_rows("dead")) == 1


def test_a_registry_that_is_down_is_not_an_error_of_the_record(drive: Drive) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        driver = drive(copied(Avro(Order, registry=f"http://127.0.0.1:{unused.getsockname()[1]}")))
        with pytest.raises(RegistryUnreachable):
            driver.send_bytes("in", b"k", b"\0\0\0\0\1abc")
        assert driver.read_rows("dead") == []


def test_without_a_registry_a_record_has_the_data_alone(drive: Drive) -> None:
    driver = drive(copied(Avro(Order)))
    driver.send("in", Order("ann", 5), key="k")
    assert [row.value for row in driver.read_rows("out")] == [b"\x06ann\x0a"]
