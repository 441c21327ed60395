"""Connect's Avro converter with a real registry: values come back as they were, and Confluent's client reads them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.connect.avro_converter import AvroConverter
from barnabas.connect.avro_schemas import AvroReader, AvroWriter
from barnabas.connect.connectors.postgres.envelope import SOURCE
from barnabas.connect.errors import DataError, RetriableError
from barnabas.connect.schemas import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Field,
    Schema,
    Type,
    array,
    date_schema,
    decimal_schema,
    mapping,
    struct,
    time_schema,
    timestamp_schema,
)
from barnabas.testing import Broker, RegistryProcess

HOME = struct({"city": STRING}, name="shop.Home", optional=True)
ORDER = struct(
    [
        Field("id", INT64),
        Field("tiny", INT8),
        Field("small", INT16.as_optional()),
        Field("note", Schema(Type.STRING, optional=True, default="none")),
        Field("paid", BOOLEAN),
        Field("ratio", FLOAT64.as_optional()),
        Field("raw", BYTES),
        Field("price", decimal_schema(2)),
        Field("day", date_schema()),
        Field("clock", time_schema()),
        Field("at", timestamp_schema(optional=True)),
        Field("tags", array(STRING.as_optional())),
        Field("counts", mapping(STRING, INT32)),
        Field("by_number", mapping(INT32, STRING)),
        Field("home", HOME),
        Field("work", HOME),
        Field("source", SOURCE),
    ],
    name="shop.Order",
    version=2,
)
VALUE: dict[str, Any] = {
    "id": 7,
    "tiny": -3,
    "small": None,
    "note": "hi",
    "paid": True,
    "ratio": 0.5,
    "raw": b"\x00\xff",
    "price": Decimal("12.34"),
    "day": dt.date(2026, 1, 2),
    "clock": dt.time(3, 4, 5, 678000),
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
    "tags": ["a", None],
    "counts": {"x": 1},
    "by_number": {5: "five"},
    "home": {"city": "Graz"},
    "work": None,
    "source": {
        **dict.fromkeys(("version", "connector", "name", "db", "schema", "table"), "x"),
        **dict.fromkeys(("sequence", "ts_us", "ts_ns", "txId", "lsn", "xmin", "origin", "origin_lsn")),
        "ts_ms": 1,
        "snapshot": "false",
    },
}


@pytest.fixture(scope="module")
def registry() -> Any:
    with Broker() as broker, RegistryProcess(broker.bootstrap_servers) as running:
        yield running


def converter(url: str, **more: str) -> AvroConverter:
    given = {"schema.registry.url": url} | {key.replace("_", "."): value for key, value in more.items()}
    config: Any = AvroConverter.Config.read(given)
    return AvroConverter(config)


def test_schemas_survive_the_way_through_avro() -> None:
    back = AvroReader().schema(AvroWriter().schema(ORDER))
    assert [(each.name, each.schema.type, each.schema.optional) for each in back.fields] == [
        (each.name, each.schema.type, each.schema.optional) for each in ORDER.fields
    ]
    assert (back.name, back.version) == (ORDER.name, ORDER.version)
    assert back.field("note") == ORDER.field("note")
    assert back.field("source") == ORDER.field("source")


def test_values_come_back_and_confluents_client_reads_and_writes_them(registry: Any) -> None:
    made = converter(registry.url)
    data = made.to_bytes("orders", ORDER, VALUE)
    assert data is not None
    assert converter(registry.url).from_bytes("orders", data).value == VALUE
    with SchemaRegistryClient({"url": registry.url}) as client:
        context = SerializationContext("orders", MessageField.VALUE)
        read = AvroDeserializer(client)(data, context)
        assert read["price"] == Decimal("12.34")
        assert read["by_number"] == [{"key": 5, "value": "five"}]
        text = client.get_latest_version("orders-value").schema.schema_str
        written = AvroSerializer(client, text)(read, context)
    assert made.from_bytes("orders", written).value == VALUE


def test_what_is_no_avro_is_an_error_of_the_record(registry: Any) -> None:
    made = converter(registry.url)
    data = made.to_bytes("orders", ORDER, VALUE)
    assert data is not None
    for wrong in (b"", b"\x01\x00\x00\x00\x01x", data[:5], data + b"x", b"\x00\x7f\xff\xff\xff"):
        with pytest.raises(DataError):
            made.from_bytes("orders", wrong)
    with pytest.raises(DataError):
        made.to_bytes("orders", ORDER, {"id": "text"})
    with pytest.raises(DataError, match="cannot be the name"):
        made.to_bytes("orders", struct({"a b": STRING}), {"a b": "x"})
    assert made.to_bytes("orders", None, None) is None


def test_a_registry_that_is_away_is_asked_again_later() -> None:
    with pytest.raises(RetriableError):
        converter("http://127.0.0.1:1").to_bytes("orders", ORDER, VALUE)
