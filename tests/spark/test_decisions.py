"""A driver that dies while it commits a batch, and whose checkpoint is lost: what is open is committed, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.client.transactions import OpenTransaction, end_transaction
from barnabas.spark.connector.decisions import Decision, load_decision, store_decision
from barnabas.spark.connector.ending import Written, end
from barnabas.spark.connector.link import Link, close_all, link
from barnabas.spark.connector.sink_options import SinkOptions
from barnabas.spark.connector.writing import Batch, write
from barnabas.streams.catalog.application import Application
from barnabas.streams.host.rebuild import RebuildRefused, rebuild
from barnabas.testing import BrokerProcess

SCHEMA = StructType(
    [StructField("value", BinaryType()), StructField("topic", StringType()), StructField("offsets", StringType())]
)
KNOWN = Application("app", "", {"in": 2}, 2, 4, "g", "/gone", [], [], is_atomic=False, started_ms=0)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    with BrokerProcess(tmp_path / "broker") as broker:
        with blocking.Admin(Settings.of({"bootstrap.servers": broker.bootstrap_servers})) as admin:
            admin.create_topic(NewTopic("in", 2))
            admin.create_topic(NewTopic("out", 1))
        yield broker.bootstrap_servers
        close_all()


def options_of(servers: str) -> SinkOptions:
    told = {"kafka.bootstrap.servers": servers, "offsetsGroup": "app", "applicationId": "app", "decidedCommits": "true"}
    return SinkOptions.of(told, SCHEMA)


def written(servers: str, batch_id: int) -> list[Written]:
    """A batch of two tasks, each with a record and the offset that it has read, not committed yet."""
    found = []
    for task in range(2):
        offsets = f'{{"in": {{"{task}": {batch_id + 1}}}}}'
        value = pa.array([f"{batch_id}-{task}".encode(), None], pa.binary())
        columns = {"value": value, "topic": ["out", None], "offsets": pa.array([None, offsets], pa.string())}
        rows = pa.RecordBatch.from_pydict(columns)
        found.append(write(iter([rows]), options_of(servers), Batch("sink-q", task, batch_id, "app")))
    return found


def die_in_between(servers: str, messages: list[Written], batch_id: int) -> Link:
    """Decide to commit, commit the first transaction, and stop."""
    connection = link(ProducerSettings, options_of(servers).settings)
    opened = {each.task: OpenTransaction(*each.transaction) for each in messages if each.transaction}
    connection.run(store_decision(connection.cluster, "app", Decision("sink-q", batch_id, opened)))
    connection.run(end_transaction(connection.cluster, opened[0], commit=True))
    return connection


def values(servers: str) -> list[bytes]:
    table = blocking.read("out", bootstrap_servers=servers, isolation_level="read_committed")
    return sorted(table.column("value").to_pylist())


def test_transactions_that_were_decided_on_are_committed_by_the_rebuild(servers: str) -> None:
    end(written(servers, 0), options_of(servers), commit=True, batch_id=0)
    die_in_between(servers, written(servers, 1), 1)
    origin = rebuild(KNOWN, {"in": 2}, {"bootstrap.servers": servers})
    assert origin is not None
    assert origin.offsets == {"in": {"0": 2, "1": 2}}
    assert values(servers) == [b"0-0", b"0-1", b"1-0", b"1-1"]
    assert rebuild(KNOWN, {"in": 2}, {"bootstrap.servers": servers}) == origin, "a second rebuild finds the same"


def test_a_transaction_that_was_aborted_meanwhile_makes_the_rebuild_refuse(servers: str) -> None:
    end(written(servers, 0), options_of(servers), commit=True, batch_id=0)
    messages = written(servers, 1)
    connection = die_in_between(servers, messages, 1)
    assert messages[1].transaction is not None
    connection.run(end_transaction(connection.cluster, OpenTransaction(*messages[1].transaction), commit=False))
    with pytest.raises(RebuildRefused, match=r"committed batch 1: 1 of 2 transactions were aborted.*streams reset app"):
        rebuild(KNOWN, {"in": 2}, {"bootstrap.servers": servers})


def test_transactions_without_a_decision_are_aborted_and_their_offsets_are_not_read(servers: str) -> None:
    end(written(servers, 0), options_of(servers), commit=True, batch_id=0)
    messages = written(servers, 1)
    origin = rebuild(KNOWN, {"in": 2}, {"bootstrap.servers": servers})
    assert origin is not None
    assert origin.offsets == {"in": {"0": 1, "1": 1}}
    assert values(servers) == [b"0-0", b"0-1"]
    connection = link(ProducerSettings, options_of(servers).settings)
    assert connection.run(load_decision(connection.cluster, "app", 2)) is None
    with pytest.raises(Exception, match="ended before all tasks"):
        end(messages, options_of(servers), commit=True, batch_id=None)
