"""A cluster of Spark in processes, started from the pip install: the demo's pipeline runs on it unchanged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tools.demo_orders import Shop

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.spark.java import find_java
from barnabas.testing import BrokerProcess

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
READY_SECONDS_MAX = 240
RESULT_SECONDS_MAX = 600


class SparkProcess:
    """A master or a worker, until its log says that it is there."""

    def __init__(self, *arguments: str, ready: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [str(home / "bin" / "spark-class"), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.found: re.Match[str] | None = None
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(re.compile(ready),))
        self._reader.start()
        assert self._ready.wait(READY_SECONDS_MAX), f"{arguments[0]} did not come up"

    def _read(self, ready: re.Pattern[str]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.found = self.found or ready.search(line)
            if self.found:
                self._ready.set()
        self._ready.set()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        package = "org.apache.spark.deploy"
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        first = SparkProcess(f"{package}.master.Master", *ports, ready=r"Starting Spark master at (spark://\S+)")
        stack.callback(first.stop)
        assert first.found is not None
        address = first.found[1]
        for number in (1, 2):
            told = ("--cores", "1", "--memory", "768m", "--work-dir", str(tmp_path / f"worker-{number}"))
            worker = SparkProcess(
                f"{package}.worker.Worker", *ports, *told, address, ready="Successfully registered with master"
            )
            stack.callback(worker.stop)
        yield address


def test_the_pipeline_of_the_demo_runs_on_a_master_and_two_workers(master: str, tmp_path: Path) -> None:
    shop = Shop(60, 40)
    with BrokerProcess(tmp_path / "broker") as broker:
        servers = broker.bootstrap_servers
        with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
            for topic in ("orders", "payments", "revenue", "orders.dead-letters"):
                admin.create_topic(NewTopic(topic, 2))
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": servers})) as producer:
            for orders, payments in shop.ticks():
                for topic, records in (("orders", orders), ("payments", payments)):
                    producer.send_many(topic, [(key.encode(), value.encode()) for key, value in records])
        command = [sys.executable, "-m", "barnabas", "run", str(ROOT / "examples" / "pipelines" / "revenue.py")]
        command += ["revenue", "--master", master, "-b", servers, "--checkpoints", str(tmp_path / "checkpoints")]
        command += ["--set", "spark.executor.memory=512m", "--set", "spark.sql.shuffle.partitions=2"]
        running = subprocess.Popen(command)
        try:
            found = _result(servers, len(shop.expected), running)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(120)
    assert found == {place: count for place, (count, _) in shop.expected.items()}
    assert len(list(tmp_path.glob("worker-*/app-*/*"))) >= 2, "both workers had an executor"


def _result(servers: str, count: int, running: subprocess.Popen[bytes]) -> dict[tuple[object, str], int]:
    from datetime import datetime

    deadline = time.monotonic() + RESULT_SECONDS_MAX
    while time.monotonic() < deadline:
        assert running.poll() is None, "the pipeline ended"
        table = blocking.read("revenue", bootstrap_servers=servers, isolation_level="read_committed")
        rows = [json.loads(value) for value in table.column("value").to_pylist()]
        if len(rows) >= count:
            found = {(datetime.fromisoformat(row["start"]), row["country"]): row["orders"] for row in rows}
            assert len(found) == len(rows), "a window is there twice"
            return found
        time.sleep(2)
    raise AssertionError(f"only {len(rows)} of {count} windows came")
