"""Values of a schema registry in Spark: functions, source, sink and pipelines; evolution, and records that are bad."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import functions as sql

from barnabas import NewTopic, ProducerSettings, blocking
from barnabas.client.serdes import Registry
from barnabas.client.serdes.registered import head_of
from barnabas.client.serdes.registry import Schema
from barnabas.spark import Topic, from_registry, pipeline, registry_error, start, to_registry
from barnabas.testing import BrokerProcess
from barnabas.testing.registry import RegistryProcess

OLD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "item", "type": ["null", "string"], "default": None}]}


@pytest.fixture(scope="module")
def registry_url(shared_broker: BrokerProcess) -> Iterator[str]:
    with RegistryProcess(shared_broker.bootstrap_servers) as running:
        yield running.url


def register(url: str, subject: str, schema: Any, kind: Any = "AVRO") -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return asyncio.run(Registry(url).register(subject, Schema(text, kind)))


def avro(schema: Any, schema_id: int, **fields: Any) -> bytes:
    out = io.BytesIO(head_of(schema_id))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), fields)
    return out.getvalue()


def send(stage: Any, topic: str, values: list[bytes | None]) -> None:
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": stage.servers})) as producer:
        producer.send_many(topic, [(None, value) for value in values])


def an_orders_topic(stage: Any, url: str) -> tuple[str, list[bytes]]:
    """A topic with an old and a new order, and the two."""
    topic = stage.topic("orders")
    old, new = register(url, f"{topic}-value", OLD), register(url, f"{topic}-value", NEW)
    rows = [
        avro(OLD, old, id=1, at=1_700_000_000_123, tags={"a": "b"}),
        avro(NEW, new, id=2, at=0, tags={}, item="tea"),
    ]
    return topic, rows


def test_values_are_columns_whichever_version_wrote_them_and_back(stage: Any, registry_url: str) -> None:
    topic, rows = an_orders_topic(stage, registry_url)
    bad = [b"no head", rows[0] + b"\0", head_of(999_999) + b"x"]
    send(stage, topic, [rows[0], None, rows[1], *bad])
    plain = stage.read(subscribe=topic)
    told: dict[str, Any] = {"registry": registry_url}
    order = from_registry("value", f"{topic}-value", on_bad_record="null", **told)
    reason = registry_error("value", f"{topic}-value", **told)
    found = plain.select(order.alias("order"), reason.alias("reason"), "offset").orderBy("offset").collect()
    assert [row.order and (row.order.id, row.order.item, row.order.tags) for row in found] == [
        (1, None, {"a": "b"}),
        None,
        (2, "tea", {}),
        None,
        None,
        None,
    ]
    assert found[0].order.at.timestamp() == 1_700_000_000.123
    assert [row.reason for row in found] == [
        *[None] * 3,
        "there is no schema id in front",
        "bytes follow the data",
        "the registry knows no schema 999999",
    ]
    good = plain.where("offset in (0, 2)")
    again = good.select(
        to_registry(from_registry("value", f"{topic}-value", **told), f"{topic}-value", **told).alias("value")
    )
    latest = register(registry_url, f"{topic}-value", NEW)
    assert sorted(bytes(row.value) for row in again.collect()) == sorted(
        [avro(NEW, latest, id=1, at=1_700_000_000_123, tags={"a": "b"}, item=None), rows[1]]
    )
    with pytest.raises(Exception, match="cannot be decoded"):
        plain.select(from_registry("value", f"{topic}-value", **told)).collect()


def test_a_source_decodes_and_puts_bad_records_aside(stage: Any, registry_url: str) -> None:
    topic, rows = an_orders_topic(stage, registry_url)
    send(stage, topic, [rows[0], b"\0\0\0\0\1", rows[1]])
    options = {"subscribe": topic, "value.format": "avro", "registry.url": registry_url}
    found = sorted(stage.read(**options, onBadRecord="dead_letter").select("value.*", "offset").collect())
    assert [(row.id, row.item, row.offset) for row in found] == [(1, None, 0), (2, "tea", 2)]
    letters = blocking.read(f"{topic}.dead-letters", bootstrap_servers=stage.servers, with_headers=True)
    assert letters["value"].to_pylist() == [b"\0\0\0\0\1"]
    headers = {each["key"]: each["value"].decode() for each in letters["headers"][0].as_py()}
    assert headers["barnabas.topic"] == topic
    assert headers["barnabas.offset"] == "1"
    assert "cannot be decoded" in headers["barnabas.reason"]
    assert [row.value for row in stage.read(**options, onBadRecord="null").where("offset = 1").collect()] == [None]
    with pytest.raises(Exception, match="offset 1: the value cannot be decoded"):
        stage.read(**options).collect()


def test_a_stream_is_copied_from_avro_to_avro(stage: Any, registry_url: str) -> None:
    topic, rows = an_orders_topic(stage, registry_url)
    send(stage, topic, rows)
    copy = stage.topic("copy")
    formats = {"value.format": "avro", "registry.url": registry_url}
    orders = stage.stream(subscribe=topic, startingOffsets="earliest", **formats)
    writer = orders.select(sql.struct("value.id", "value.item", "value.at", "value.tags").alias("value"))
    stage.finish(writer.writeStream.format("barnabas").options(**stage.options({"topic": copy} | formats)))
    table = blocking.read(
        copy,
        bootstrap_servers=stage.servers,
        schema="latest",
        registry=registry_url,
        isolation_level="read_committed",
    )
    assert table["id"].to_pylist() == [1, 2]
    assert table["item"].to_pylist() == [None, "tea"]
    assert table["tags"].to_pylist() == [[("a", "b")], []]


def test_a_pipeline_reads_and_writes_values_of_the_registry(stage: Any, registry_url: str) -> None:
    topic, rows = an_orders_topic(stage, registry_url)
    send(stage, topic, [*rows, b"broken"])
    target, letters = stage.topic("out"), stage.topic("letters")

    @pipeline(
        name="registry-orders",
        reads={
            "orders": Topic(
                name=topic, format="avro", registry=registry_url, on_bad_record="dead_letter", dead_letters=letters
            )
        },
        writes=Topic(name=target, format="avro", registry=registry_url),
    )
    def teas(orders: Any) -> Any:
        return orders.where("item = 'tea'").select("id", "item")

    run = start(teas, stage.spark, servers=stage.servers, checkpoints=stage.directory / "pipelines", once=True)
    for query in run.queries:
        assert query.awaitTermination(120)
        assert query.exception() is None
    table = blocking.read(
        target,
        bootstrap_servers=stage.servers,
        schema="latest",
        registry=registry_url,
        isolation_level="read_committed",
    )
    assert table.select(["id", "item"]).to_pylist() == [{"id": 2, "item": "tea"}]
    assert stage.values(letters) == ["broken"]


JSON = {
    "type": "object",
    "title": "User",
    "properties": {"name": {"type": "string"}, "ages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
}
PROTO = 'syntax = "proto3"; package shop; message Item { string name = 1; repeated int64 sizes = 2; }'


def test_json_and_protobuf_are_read_by_their_libraries(stage: Any, registry_url: str) -> None:
    users, items = stage.topic("users"), stage.topic("items")
    json_id = register(registry_url, f"{users}-value", JSON, "JSON")
    proto_id = register(registry_url, f"{items}-value", PROTO, "PROTOBUF")
    send(stage, users, [head_of(json_id) + b'{"name": "ann", "ages": [1, 2]}', head_of(json_id) + b'{"ages": 3}'])
    send(stage, items, [head_of(proto_id) + b"\0" + b"\x0a\x03tea\x12\x02\x05\x06", head_of(proto_id) + b"\0\xff"])
    for topic, kind, expected in ((users, "json", ("ann", [1, 2])), (items, "protobuf", ("tea", [5, 6]))):
        frame = stage.read(subscribe=topic, onBadRecord="null", **{"value.format": kind, "registry.url": registry_url})
        found = frame.orderBy("offset").collect()
        assert tuple(found[0].value) == expected
        assert found[1].value is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.format": "xml"}, "binary or avro"),
        ({"value.format": "json"}, "of the kind avro"),
        ({"value.format": "avro", "value.subject": "nowhere"}, "not found"),
        ({"value.format": "avro", "onBadRecord": "ignore"}, "stop or null"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    stage: Any, registry_url: str, options: dict[str, str], message: str
) -> None:
    topic, _ = an_orders_topic(stage, registry_url)
    with pytest.raises(Exception, match=message):
        stage.read(subscribe=topic, **{"registry.url": registry_url} | options)


def test_the_example_of_the_page_works(stage: Any, registry_url: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "SPARK.md").read_text()
    section = page.partition("## Values of a schema registry")[2]
    example = section.partition("```python\n")[2].partition("```")[0]
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
    }
    schema_id = register(registry_url, "orders-value", schema)
    with stage.admin() as admin:
        admin.create_topic(NewTopic("orders"))
    send(stage, "orders", [avro(schema, schema_id, id=1, item="tea")])
    names: dict[str, Any] = {"spark": stage.spark, "servers": stage.servers, "registry_url": registry_url}
    exec(example, names)
    assert [tuple(row) for row in names["orders"].select("value.id", "value.item").collect()] == [(1, "tea")]
    rows = names["plain"].select(names["order"].alias("order")).select("order.*").collect()
    assert [tuple(row) for row in rows] == [(1, "tea")]
