"""Typed records on one core: Avro as Arrow columns before and after, serdes beside confluent-kafka's, a cached id,
and the restart of a registry with many schemas.

``python -m bench typed`` prints it. Figures are of CPU time, the best of several rounds, except for the registry's
answer, which is a round trip over loopback as its client sees it.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlparse

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas import ProducerSettings, blocking
from barnabas.client.serdes import NotReady, Place, RegisteredAvro, Registry
from barnabas.client.serdes.column_readers import reader_of_subject
from barnabas.client.serdes.columns import TypedColumns
from barnabas.client.serdes.columns_avro import AvroEncoder
from barnabas.client.serdes.registry import Schema
from barnabas.testing import Broker, RegistryProcess
from barnabas.wire.avro import decoder

COUNT: Final = int(os.environ.get("BARNABAS_TYPED_ROWS", "20000"))
ROUNDS: Final = 5
REQUESTS: Final = 2_000
SCHEMAS: Final = 50_000
GOAL: Final = 1_000_000
ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "total", "type": "double"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
                },
            },
        },
    ],
}
PROTO: Final = """syntax = "proto3"; message Order {
  int64 id = 1; string user = 2; string status = 3; double total = 4; string note = 5; int64 at = 6;
  message Line { string sku = 1; int32 count = 2; } repeated Line lines = 7; }"""


@dataclass
class Small:
    id: int
    user: str
    total: float


def orders() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "user": f"user-{number % 100}",
            "status": ("NEW", "PAID", "SENT")[number % 3],
            "total": number / 2,
            "note": None if number % 2 else "leave it at the door",
            "at": 1_700_000_000_000 + number,
            "lines": [{"sku": "ab-12", "count": each} for each in range(number % 3)],
        }
        for number in range(COUNT)
    ]


def rate(work: Callable[[], Any], count: int = COUNT) -> float:
    """Rows for each second of CPU time."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return count / best


def print_typed() -> bool:
    """Whether Avro becomes columns at the rate that is the goal."""
    with Broker() as broker, RegistryProcess(broker.bootstrap_servers) as registry:
        is_reached = _print_columns(registry.url)
        _print_protobuf(registry.url)
        _print_serdes(registry.url)
        _print_answers(registry.url)
    _print_restart()
    return is_reached


def _line(name: str, figure: float, beside: float | None = None) -> None:
    print(f"{name:44}{figure:12,.0f}{'' if beside is None else f'{figure / beside:10.1f} x'}")


def _print_columns(url: str) -> bool:
    print(f"rows a CPU second, {COUNT:,} orders; decoder {'compiled' if decoder.COMPILED else 'interpreted'}")
    parsed = fastavro.parse_schema(ORDER)
    registry = Registry(url)
    schema_id = asyncio.run(registry.register("orders-value", Schema(json.dumps(ORDER))))
    table = pa.array(
        [row | {"at": row["at"] * 1000} for row in orders()],
        pa.struct(
            [
                ("id", pa.int64()),
                ("user", pa.string()),
                ("status", pa.string()),
                ("total", pa.float64()),
                ("note", pa.string()),
                ("at", pa.timestamp("us", tz="UTC")),
                ("lines", pa.list_(pa.struct([("sku", pa.string()), ("count", pa.int32())]))),
            ]
        ),
    )
    encoder = AvroEncoder(json.dumps(ORDER), schema_id)
    column = encoder.encode(table)
    rows = column.to_pylist()

    def before() -> Any:
        found = [fastavro.schemaless_reader(io.BytesIO(row[5:]), parsed, None) for row in rows]
        return pa.RecordBatch.from_pylist(found)

    columns = TypedColumns(registry, asyncio.run(reader_of_subject(registry, "orders-value")))
    slow = rate(before)
    fast = rate(lambda: asyncio.run(columns.decode(column)))
    _line("Avro to columns, before (fastavro, pylist)", slow)
    _line("Avro to columns, after", fast, slow)
    _line("columns to Avro (fastavro)", rate(lambda: encoder.encode(table)))
    return fast >= GOAL


def _print_protobuf(url: str) -> None:
    registry = Registry(url)
    schema_id = asyncio.run(registry.register("protobuf-value", Schema(PROTO, "PROTOBUF")))
    reader: Any = asyncio.run(reader_of_subject(registry, "protobuf-value"))
    kind = reader.message_class()
    head = b"\0" + schema_id.to_bytes(4, "big") + b"\0"
    rows = []
    for row in orders():
        message = kind(**{name: value for name, value in row.items() if value is not None and name != "lines"})
        for each in row["lines"]:
            message.lines.add(**each)
        rows.append(head + message.SerializeToString())
    column = pa.array(rows, pa.binary())
    columns = TypedColumns(registry, reader)
    _line("Protobuf to columns (the library, row by row)", rate(lambda: asyncio.run(columns.decode(column))))


def _print_serdes(url: str) -> None:
    print("\nrecords a CPU second, a dataclass of three fields; ours beside confluent-kafka's")
    objects = [Small(number, f"user-{number % 100}", number / 2) for number in range(COUNT)]
    place = Place("serdes")
    ours = RegisteredAvro(Registry(url), Small)
    read_ours = RegisteredAvro(Registry(url), Small)
    first = _ready(lambda: ours.encode(objects[0], place))
    _ready(lambda: read_ours.decode(first, place))
    with SchemaRegistryClient({"url": url}) as client:
        context = SerializationContext("serdes", MessageField.VALUE, [])
        schema = client.get_latest_version("serdes-value").schema.schema_str
        theirs = AvroSerializer(client, schema, lambda each, _: vars(each))
        read_theirs = AvroDeserializer(client, schema, lambda each, _: Small(**each))
        data = [theirs(each, context) for each in objects]
        assert data[0] == first
        read_theirs(data[0], context)
        peer = rate(lambda: [theirs(each, context) for each in objects])
        _line("encode, confluent-kafka", peer)
        _line("encode, ours", rate(lambda: [ours.encode(each, place) for each in objects]), peer)
        peer = rate(lambda: [read_theirs(each, context) for each in data])
        _line("decode, confluent-kafka", peer)
        _line("decode, ours", rate(lambda: [read_ours.decode(each, place) for each in data]), peer)


def _ready(work: Callable[[], Any]) -> Any:
    while True:
        try:
            return work()
        except NotReady as unready:
            wait = unready.wait

            async def ask(wait: Any = wait) -> None:
                await wait()

            asyncio.run(ask())


def _print_answers(url: str) -> None:
    """GET /schemas/ids/N on one connection: what a client waits for an id that the registry has in memory."""
    place = urlparse(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    times = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        connection.request("GET", "/schemas/ids/1")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
    connection.close()
    times.sort()
    print(
        f"\na cached id: median {1000 * statistics.median(times):.2f} ms, 99 % {1000 * times[-REQUESTS // 100]:.2f} ms"
    )


def _print_restart() -> None:
    """How long a registry takes from its start until it answers for the last of many schemas."""
    with Broker() as broker:
        with RegistryProcess(broker.bootstrap_servers) as registry:
            asyncio.run(Registry(registry.url).register("first", Schema('"string"')))
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
            producer.send_many("_schemas", [_stored(number) for number in range(2, SCHEMAS + 2)])
        used, start = os.times(), time.perf_counter()
        with RegistryProcess(broker.bootstrap_servers) as registry:
            asyncio.run(Registry(registry.url).schema(SCHEMAS + 1))
            wall = time.perf_counter() - start
        after = os.times()
        cpu = after.children_user + after.children_system - used.children_user - used.children_system
    print(f"restart with {SCHEMAS:,} schemas: {wall:.2f} s, {cpu:.2f} s of CPU time (limit: 2 s)")


def _stored(number: int) -> tuple[bytes, bytes]:
    """A record of the topic _schemas."""
    subject, version = f"subject-{number % 5000}", number // 5000 + 1
    schema = json.dumps({**ORDER, "name": f"Order{number}"}, separators=(",", ":"))
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": number, "schema": schema, "deleted": False}
    return json.dumps(key, separators=(",", ":")).encode(), json.dumps(value, separators=(",", ":")).encode()
