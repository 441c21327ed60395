"""A driver that dies while it commits a batch, and whose checkpoint is lost: what is open is committed, or refused."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.client.transactions import OpenTransaction, end_transaction
from barnabas.model.errors import ApiError
from barnabas.spark.connector.decisions import Decision, load_decision, store_decision
from barnabas.spark.connector.ending import Written, end
from barnabas.spark.connector.link import Link, close_all, link
from barnabas.spark.connector.sink_options import SinkOptions
from barnabas.spark.connector.writing import Batch, write
from barnabas.streams.catalog.application import Application
from barnabas.streams.host.checkpoint import Origin
from barnabas.streams.host.rebuild import RebuildRefused, rebuild
from barnabas.streams.host.state_topic import topic_name
from barnabas.testing import BrokerProcess

SCHEMA = StructType(
    [StructField("value", BinaryType()), StructField("topic", StringType()), StructField("offsets", StringType())]
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("decisions")) as broker:
        yield broker.bootstrap_servers
        close_all()


class Driver:
    """A driver of an application that writes batches of two tasks, each with a record and the offset it has read."""

    def __init__(self, servers: str, name: str) -> None:
        self.name = name
        self.client = {"bootstrap.servers": servers}
        self.known = Application(name, "", {name: 2}, 2, 4, "g", "/gone", [], [], is_atomic=False, started_ms=0)
        told = {"kafka.bootstrap.servers": servers, "offsetsGroup": name, "applicationId": name}
        self.options = SinkOptions.of(told | {"decidedCommits": "true"}, SCHEMA)
        self.link: Link = link(ProducerSettings, self.options.settings)
        with blocking.Admin(Settings.of(self.client)) as admin:
            admin.create_topic(NewTopic(name, 2))
            admin.create_topic(NewTopic(f"{name}-out", 1))

    def write(self, batch_id: int) -> list[Written]:
        """Write a batch, without committing it."""
        found = []
        for task in range(2):
            offsets = f'{{"{self.name}": {{"{task}": {batch_id + 1}}}}}'
            value = pa.array([f"{batch_id}-{task}".encode(), None], pa.binary())
            columns = {"value": value, "topic": [f"{self.name}-out", None]}
            rows = pa.RecordBatch.from_pydict(columns | {"offsets": pa.array([None, offsets], pa.string())})
            found.append(write(iter([rows]), self.options, Batch(f"{self.name}-q", task, batch_id, self.name)))
        return found

    def commit(self, batch_id: int) -> None:
        end(self.write(batch_id), self.options, commit=True, batch_id=batch_id)

    def die_in_between(self, batch_id: int) -> OpenTransaction:
        """Decide to commit, commit the first transaction, and stop; returns the second one."""
        opened = {each.task: OpenTransaction(*each.transaction) for each in self.write(batch_id) if each.transaction}
        decision = Decision(f"{self.name}-q", batch_id, opened)
        self.link.run(store_decision(self.link.cluster, self.name, decision))
        self.link.run(end_transaction(self.link.cluster, opened[0], commit=True))
        return opened[1]

    def rebuild(self) -> Origin | None:
        return rebuild(self.known, {self.name: 2}, self.client)

    def values(self) -> list[bytes]:
        servers = self.client["bootstrap.servers"]
        table = blocking.read(f"{self.name}-out", bootstrap_servers=servers, isolation_level="read_committed")
        return sorted(table.column("value").to_pylist())


def test_transactions_that_were_decided_on_are_committed_by_the_rebuild(servers: str) -> None:
    driver = Driver(servers, "decided")
    driver.commit(0)
    driver.die_in_between(1)
    origin = driver.rebuild()
    assert origin is not None
    assert origin.offsets == {"decided": {"0": 2, "1": 2}}
    assert driver.values() == [b"0-0", b"0-1", b"1-0", b"1-1"]
    assert driver.rebuild() == origin, "a second rebuild finds the same"


def test_a_transaction_that_was_aborted_meanwhile_makes_the_rebuild_refuse(servers: str) -> None:
    driver = Driver(servers, "aborted")
    driver.commit(0)
    second = driver.die_in_between(1)
    driver.link.run(end_transaction(driver.link.cluster, second, commit=False))
    with pytest.raises(RebuildRefused, match=r"committed batch 1: 1 of 2 transactions were aborted.*reset aborted"):
        driver.rebuild()


def test_transactions_without_a_decision_are_aborted_and_their_driver_is_fenced(servers: str) -> None:
    driver = Driver(servers, "undecided")
    driver.commit(0)
    messages = driver.write(1)
    origin = driver.rebuild()
    assert origin is not None
    assert origin.offsets == {"undecided": {"0": 1, "1": 1}}
    assert driver.values() == [b"0-0", b"0-1"]
    assert driver.link.run(load_decision(driver.link.cluster, "undecided", 2)) is None
    with pytest.raises(ApiError, match="ended before all tasks"):
        end(messages, driver.options, commit=True)


def test_state_without_offsets_is_refused(servers: str) -> None:
    driver = Driver(servers, "expired")
    assert driver.rebuild() is None, "an application that has written nothing starts from the beginning"
    with blocking.Producer(ProducerSettings.of(driver.client)) as producer:
        producer.send(topic_name("expired"), b"x", key=b"0_0/0/0")
    with pytest.raises(RebuildRefused, match=r"committed offsets have expired or were deleted.*streams reset expired"):
        driver.rebuild()
