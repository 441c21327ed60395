"""The topic that a sink's markers are kept for: there before the first record, with all of its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.spark.connector.ending import end
from barnabas.spark.connector.link import close_all, link
from barnabas.spark.connector.markers import SLOTS, TOPIC, ensure_topic
from barnabas.spark.connector.sink_options import SinkOptions
from barnabas.spark.connector.writing import Batch, write
from barnabas.spark.errors import BatchChanged
from barnabas.testing import BrokerProcess


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    """A broker of the test's own: the shared one has the topic already."""
    with BrokerProcess(tmp_path / "broker") as broker:
        yield broker.bootstrap_servers
        close_all()


def partitions(servers: str) -> int:
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        return len(admin.describe_topics([TOPIC])[TOPIC].partitions)


def test_the_first_record_of_a_cluster_does_not_make_the_topic_with_too_few_partitions(servers: str) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"x"]})
    schema = StructType([StructField("value", BinaryType())])
    options = SinkOptions.of({"kafka.bootstrap.servers": servers, "topic": "new"}, schema)
    written = write(iter([rows]), options, Batch("sink", task=SLOTS - 1, batch_id=0))
    assert written.content.rows == 1
    assert partitions(servers) == SLOTS


def test_a_topic_with_too_few_partitions_gets_the_rest(servers: str) -> None:
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        admin.create_topic(NewTopic(TOPIC, 1))
    connection = link(ProducerSettings, {"bootstrap.servers": servers})
    connection.run(ensure_topic(connection.cluster))
    assert partitions(servers) == SLOTS


def test_a_committed_batch_that_is_replayed_with_other_rows_is_kept_or_stops_the_query(servers: str) -> None:
    told = {"kafka.bootstrap.servers": servers, "topic": "rows"}
    schema = StructType([StructField("value", BinaryType())])
    stop, keep = (SinkOptions.of(told | {"onReplay": value}, schema) for value in ("stop", "keep"))
    first, other = (pa.RecordBatch.from_pydict({"value": values}) for values in ([b"a", b"b"], [b"a", b"b", b"c"]))
    end([write(iter([first]), keep, Batch("sink", 0, 7))], keep, commit=True)
    with pytest.raises(BatchChanged, match="onReplay=keep"):
        write(iter([other]), stop, Batch("sink", 0, 7))
    assert write(iter([other]), keep, Batch("sink", 0, 7)).transaction is None
    with pytest.raises(BatchChanged, match="older than what was written"):
        write(iter([other]), keep, Batch("sink", 0, 6))
    table = blocking.read("rows", bootstrap_servers=servers, isolation_level="read_committed")
    assert table.column("value").to_pylist() == [b"a", b"b"]
