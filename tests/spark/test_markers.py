"""The topic that a sink's markers are kept for: there before the first record, with all of its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType, TimestampType

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.client.partitions.partitioner import of_key
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


def test_timestamps_offsets_and_default_partitions_are_written(servers: str) -> None:
    """Rows with a partition and rows without share a batch; a row with offsets is no record."""
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        admin.create_topic(NewTopic("rows", 8))
        admin.create_topic(NewTopic("source", 1))
    fields = [StructField("key", BinaryType()), StructField("value", BinaryType())]
    fields += [StructField("partition", IntegerType()), StructField("timestamp", TimestampType())]
    schema = StructType([*fields, StructField("offsets", StringType())])
    told = {"kafka.bootstrap.servers": servers, "topic": "rows", "includeTimestamp": "true", "offsetsGroup": "app"}
    options = SinkOptions.of(told, schema)
    columns = {
        "key": [b"a", b"a", None],
        "value": [b"1", b"2", None],
        "partition": pa.array([7, None, None], pa.int32()),
        "timestamp": pa.array([5000, 6000, None], pa.timestamp("us", tz="UTC")),
        "offsets": [None, None, '{"source": {"0": 23}}'],
    }
    end([write(iter([pa.RecordBatch.from_pydict(columns)]), options, Batch("sink", 0, 0))], options, commit=True)
    table = blocking.read("rows", bootstrap_servers=servers, isolation_level="read_committed").to_pylist()
    rows = {row["value"]: (row["partition"], int(row["timestamp"].timestamp() * 1000)) for row in table}
    assert rows == {b"1": (7, 5), b"2": (of_key("rows", b"a", 8), 6)}
    with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
        assert {str(place): entry.offset for place, entry in admin.group_offsets("app").items()} == {"source-0": 23}
