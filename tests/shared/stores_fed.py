"""An application with a store of every kind, and its changelogs as its tasks write them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.spark.connector.link import close_all
from barnabas.streams import App, Processor, Record, Store, session, tumbling
from barnabas.streams.catalog.task_metrics import metrics_topic
from barnabas.streams.host.checkpoint import Note
from barnabas.streams.host.counters import Intake
from barnabas.streams.host.hosted import HostedTask
from barnabas.streams.host.plan import make_plan
from barnabas.streams.host.registration import register
from barnabas.streams.host.topics import internal_topics
from barnabas.streams.runtime.task import Row
from barnabas.testing import BrokerProcess
from barnabas.wire.key_hash import murmur2


class Newest(Processor[str, str, str, str]):
    newest: Store[str, list[str]]

    def process(self, record: Record[str, str]) -> None:
        assert record.key is not None
        self.newest[record.key] = [*self.newest.get(record.key, []), record.value][-2:]


shop = App("shop")
sales = shop.stream("sales", value=str)
sales.group_by_key().count(store="counts").to_stream().to("sale-counts")
sales.group_by_key().window(tumbling("1s", grace="1h")).count(store="by-second").to_stream().to("by-second")
sales.group_by_key().window(session("1s", grace="1h")).count(store="visits").to_stream().to("visits")
sales.process(Newest)
shop.table("prices", value=int, store="prices", versioned="1h").to_stream().to("copied-prices")
shop.global_table("rates", value=float, store="rates")

PARTITIONS = {"sales": 2, "prices": 2, "rates": 1}


def partition_of(key: str) -> int:
    return (murmur2(key.encode()) & 0x7FFFFFFF) % 2


@contextmanager
def filled(directory: Path) -> Iterator[Fed]:
    """A broker whose topics have the records of the tests."""
    with BrokerProcess(directory / "broker") as broker:
        made = Fed(broker.bootstrap_servers)
        made.send_all()
        try:
            yield made
        finally:
            close_all()


class Fed:
    """Feeds records to the tasks of the application and writes what they write to a broker."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.plan = make_plan(shop.topology(), PARTITIONS, partitions_max=2)
        self.tasks = [HostedTask(shop, self.plan, index) for index in range(len(self.plan.tasks))]
        self._offsets: dict[tuple[str, int], int] = {}
        with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
            for topic in [
                *(NewTopic(*each) for each in PARTITIONS.items()),
                *internal_topics(shop.topology(), self.plan),
            ]:
                admin.create_topic(topic)
        note = Note.of(shop.topology(), self.plan)
        register(note, shop.topology(), self.plan, "/nowhere/shop", {"bootstrap.servers": servers})

    def offset(self, topic: str, key: str) -> int:
        """How many records were sent to the partition of a key."""
        return self._offsets[topic, partition_of(key)]

    def send(self, topic: str, key: str, value: str | None, at: int) -> None:
        partition = partition_of(key)
        offset = self._offsets.get((topic, partition), 0)
        self._offsets[topic, partition] = offset + 1
        index = self.plan.task(self.plan.reader(topic).number, partition)
        content = None if value is None else value.encode()
        record: Any = (topic, partition, offset, at, key.encode(), content, ())
        intake = Intake({topic: {partition: offset + 1}}, {topic: [1, len(key) + len(value or "")]})
        task = self.tasks[index]
        done = task.run([record], time_ms=at, seed="0", intake=intake)
        metrics = Row(metrics_topic("shop"), 0, task.name.encode(), task.counters.snapshot(0), (), at)
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            for row in [*done.rows, metrics]:
                if row.topic.endswith("-changelog"):
                    producer.send(
                        row.topic,
                        row.value,
                        key=row.key,
                        partition=row.partition,
                        headers=list(row.headers),
                        timestamp_ms=row.timestamp,
                    )

    def send_all(self) -> None:
        sales = [("a", "x", 100), ("a", "y", 1_900), ("b", "x", 2_000), ("c", "x", 5_000), ("a", "z", 5_100)]
        for key, value, at in sales:
            self.send("sales", key, value, at)
        prices = [("1", 1_000), ("2", 2_000), (None, 3_000), ("4", 4_000)]
        for price, at in prices:
            self.send("prices", "tea", price, at)
        self.send_global("EUR", "1.5")

    def send_global(self, key: str, value: str) -> None:
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            producer.send("rates", value.encode(), key=key.encode())
