"""A cluster of Spark in processes, started from the pip install: the pipeline ``revenue`` runs on it unchanged."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from revenue_shop import Shop
from spark_cluster import SparkCluster

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RESULT_SECONDS_MAX = 600
SETTINGS = ("spark.executor.memory=512m", "spark.sql.shuffle.partitions=2")


class Revenue:
    """The shop's topics on a broker, and the pipeline on a cluster of Spark."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._directory = directory
        with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
            for topic in ("orders", "payments", "revenue", "orders.dead-letters"):
                admin.create_topic(NewTopic(topic, 2))

    def sell(self, ticks: Iterable[tuple[list[tuple[str, str]], list[tuple[str, str]]]]) -> None:
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            for orders, payments in ticks:
                for topic, records in (("orders", orders), ("payments", payments)):
                    producer.send_many(topic, [(key.encode(), value.encode()) for key, value in records])

    @contextmanager
    def running(self, master: str) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "barnabas", "run", str(ROOT / "examples" / "pipelines" / "revenue.py")]
        command += ["revenue", "--master", master, "-b", self.servers]
        command += ["--checkpoints", str(self._directory / "checkpoints")]
        for told in SETTINGS:
            command += ["--set", told]
        running = subprocess.Popen(command)
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(120)

    def result(self, count: int, running: subprocess.Popen[bytes]) -> dict[tuple[object, str], int]:
        """The windows that are there when there are so many; each must be there once."""
        deadline = time.monotonic() + RESULT_SECONDS_MAX
        while time.monotonic() < deadline:
            assert running.poll() is None, "the pipeline ended"
            table = blocking.read("revenue", bootstrap_servers=self.servers, isolation_level="read_committed")
            rows = [json.loads(value) for value in table.column("value").to_pylist()]
            if len(rows) >= count:
                found = {(datetime.fromisoformat(row["start"]), row["country"]): row["orders"] for row in rows}
                assert len(found) == len(rows), "a window is there twice"
                return found
            time.sleep(2)
        raise AssertionError(f"only {len(rows)} of {count} windows came")


@pytest.fixture
def revenue(tmp_path: Path) -> Iterator[Revenue]:
    with BrokerProcess(tmp_path / "broker") as broker:
        yield Revenue(broker.bootstrap_servers, tmp_path)


def test_a_pipeline_runs_on_a_master_and_two_workers(revenue: Revenue, tmp_path: Path) -> None:
    shop = Shop(60, 40)
    revenue.sell(shop.ticks())
    with SparkCluster(tmp_path) as cluster, revenue.running(cluster.address) as running:
        found = revenue.result(len(shop.expected), running)
    assert found == {place: count for place, (count, _) in shop.expected.items()}
    assert len(list(tmp_path.glob("worker-*/app-*/*"))) >= 2, "both workers had an executor"


def test_a_pipeline_goes_on_when_a_worker_is_killed(revenue: Revenue, tmp_path: Path) -> None:
    shop = Shop(60, 40)
    ticks = shop.ticks()
    revenue.sell(itertools.islice(ticks, 30))
    with SparkCluster(tmp_path) as cluster, revenue.running(cluster.address) as running:
        revenue.result(1, running)
        cluster.kill_worker(0)
        revenue.sell(ticks)
        found = revenue.result(len(shop.expected), running)
    assert found == {place: count for place, (count, _) in shop.expected.items()}
