"""Avro of a schema registry in Spark: rows for each second of CPU time, before and after the compiled decoder.

``python -m bench typed-spark`` reads one topic in three ways, in turn, to nowhere: as bytes, decoded by fastavro in a
function of Arrow's (the way before), and with ``value.format=avro``. The CPU time is that of all processes, Java's and
the broker's too. ``BARNABAS_TYPED_ROWS`` sets the number of rows, which are read 20 times over.
"""

from __future__ import annotations

import asyncio
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import barnabas.spark
from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.client.serdes import Registry
from barnabas.client.serdes.columns_avro import AvroEncoder
from barnabas.client.serdes.registry import Schema
from barnabas.testing import BrokerProcess, RegistryProcess
from bench.spark.processes import processor_seconds
from bench.typed import COUNT, ORDER, orders

ROUNDS = 3
REPEATS = 20  # times that the orders are written


def print_typed_spark() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        BrokerProcess(Path(directory)) as broker,
        RegistryProcess(broker.bootstrap_servers) as registry,
    ):
        _fill(broker.bootstrap_servers, registry.url)
        spark = barnabas.spark.session("typed", master="local[2]", config={"spark.barnabas.fastStart": "false"})
        try:
            _print(spark, broker.bootstrap_servers, registry.url)
        finally:
            spark.stop()


def _fill(servers: str, url: str) -> None:
    schema_id = asyncio.run(Registry(url).register("orders-value", Schema(json.dumps(ORDER))))
    values = AvroEncoder(json.dumps(ORDER), schema_id).encode(pa.array(orders()))
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        admin.create_topic(NewTopic("orders", 2))
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": servers})) as producer:
        for _ in range(REPEATS):
            producer.send_arrow(pa.table({"value": values}), "orders")


def _print(spark: Any, servers: str, url: str) -> None:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", servers).option("subscribe", "orders")
    plain = reader.load()
    typed = reader.option("value.format", "avro").option("registry.url", url).load()
    kind = typed.schema["value"].dataType
    before = plain.select(_before(kind)("value").alias("value"))
    frames = {"bytes": plain.select("value"), "before (fastavro)": before, "after": typed.select("value")}
    seconds = _best({name: frame.write.format("noop").mode("overwrite").save for name, frame in frames.items()})
    rows = COUNT * REPEATS
    print(f"rows a CPU second in Spark, {rows:,} orders")
    for name, spent in seconds.items():
        print(f"{name:32}{rows / spent:12,.0f}{seconds['before (fastavro)'] / spent:10.1f} x")


def _before(kind: Any) -> Any:
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import to_arrow_type

    schema, arrow_type = json.dumps(ORDER), to_arrow_type(kind, timezone="UTC")

    def decode(values: pa.Array) -> pa.Array:
        import fastavro

        parsed = fastavro.parse_schema(json.loads(schema))
        found = [fastavro.schemaless_reader(io.BytesIO(row[5:]), parsed, None) for row in values.to_pylist()]
        return pa.array(found, arrow_type)

    decode.__annotations__ = {"values": pa.Array, "return": pa.Array}
    arrow_udf: Any = vars(functions)["arrow_udf"]
    return arrow_udf(decode, returnType=kind)


def _best(works: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of CPU time, each the best of several rounds in turn; the first round only warms up."""
    found = dict.fromkeys(works, float("inf"))
    for number in range(ROUNDS + 1):
        for name, work in works.items():
            start = processor_seconds()
            work()
            if number:
                found[name] = min(found[name], processor_seconds() - start)
    return found
