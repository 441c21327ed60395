"""A broker that goes away in the middle of a task and comes back: nothing is lost, nothing is there twice.

What a task does is called as Spark would call it; ``test_failures.py`` does the same with Spark around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.spark.connector.batch_reader import BatchReader
from barnabas.spark.connector.ending import end
from barnabas.spark.connector.link import close_all
from barnabas.spark.connector.sink_options import SinkOptions
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.connector.writing import Batch, write
from barnabas.testing import BrokerProcess

ROWS = 400
SCHEMA = StructType([StructField("value", BinaryType())])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker") as made:
        with blocking.Admin(Settings.of({"bootstrap.servers": made.bootstrap_servers})) as admin:
            admin.create_topic(NewTopic("rows", 1))
        yield made
        close_all()


def values(start: int, end: int) -> list[bytes]:
    return [b"%d " % number * 200 for number in range(start, end)]


def test_a_task_that_reads_goes_on(broker: BrokerProcess) -> None:
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers})) as producer:
        for start in range(0, ROWS, 50):
            producer.send_many("rows", [(None, value) for value in values(start, start + 50)])
    told = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "rows"}
    told |= {"kafka.max.partition.fetch.bytes": "65536", "kafka.fetch.max.bytes": "65536"}
    reader = BatchReader(SourceOptions.of(told, is_streaming=False))
    (share,) = reader.partitions()
    batches = reader.read(share)
    seen = next(batches).column("value").to_pylist()
    assert 0 < len(seen) < ROWS, "it is lost in the middle"
    broker.kill()
    broker.start()
    for batch in batches:
        seen += batch.column("value").to_pylist()
    assert seen == values(0, ROWS)


def test_a_task_that_writes_goes_on_and_is_noticed_when_it_comes_again(broker: BrokerProcess) -> None:
    servers = broker.bootstrap_servers
    options = SinkOptions.of({"kafka.bootstrap.servers": servers, "topic": "rows"}, SCHEMA)

    def pieces(*, is_lost: bool) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": values(0, 100)})
        if is_lost:
            broker.kill()
            broker.start()
        yield pa.RecordBatch.from_pydict({"value": values(100, 200)})

    for is_lost in (True, False):  # the second time as if the driver had died before it noted the first
        written = write(pieces(is_lost=is_lost), options, Batch("sink", 0, 0))
        end([written], options, commit=True)
        assert (written.transaction is None) == (not is_lost)
        table = blocking.read("rows", bootstrap_servers=servers, isolation_level="read_committed")
        assert sorted(table.column("value").to_pylist()) == sorted(values(0, 200))
