"""Kill the driver, a worker, a broker, or the sink's transactions: what comes out is what went in, each record once.

A run adds records, lets one thing go wrong while they are being copied, and compares all of the output with all of the
input through another client. ``BARNABAS_SPARK_RUNS`` says how many runs; each is a few seconds, those that kill the
driver as long as a Spark takes to start.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.model.errors import ApiError
from barnabas.testing import BrokerProcess

pytestmark = pytest.mark.slow

RUNS = int(os.environ.get("BARNABAS_SPARK_RUNS", "4"))
RECORDS = 1500
CAUGHT_UP_SECONDS_MAX = 300.0
PARTITIONS = 3


class Copier:
    """The driver in a process group of its own, so that its Java dies with it."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name("copying.py")), servers, "input", "output"]
        self._command.append(str(directory / "checkpoint"))
        self.lines: list[str] = []
        self.query_id = ""

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._reader = threading.Thread(target=self._read, args=(self.process,))
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line.strip())
            if line.startswith("QUERY "):
                self.query_id = line.split()[1]

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def workers(self) -> list[int]:
        """Python processes of the executors that belong to this driver."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
            except (OSError, IndexError):
                continue
            if session == self.process.pid and b"pyspark.daemon" in words and b"pyspark.worker" in words:
                found.append(int(entry.name))
        return sorted(found)


class Stage:
    def __init__(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory / "broker", settings={"barnabas.log.level": "ERROR"})
        self.broker.start()
        self.servers = self.broker.bootstrap_servers
        with blocking.Admin(Settings.of({"bootstrap.servers": self.servers})) as admin:
            for topic in ("input", "output"):
                admin.create_topic(NewTopic(topic, PARTITIONS))
        self.copier = Copier(self.servers, directory)
        self.copier.start()
        self.sent = 0

    def send(self) -> None:
        with blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            for start in range(self.sent, self.sent + RECORDS, 300):
                numbers = [str(number).encode() for number in range(start, start + 300)]
                producer.send_many("input", [(number, number) for number in numbers])
        self.sent += RECORDS

    def output(self) -> Counter[int]:
        """By librdkafka, which knows nothing of what is tested here."""
        from confluent_kafka import Consumer, TopicPartition

        told = {"bootstrap.servers": self.servers, "group.id": "judge", "isolation.level": "read_committed"}
        reader = Consumer(told | {"enable.partition.eof": True, "enable.auto.commit": False})
        reader.assign([TopicPartition("output", index, 0) for index in range(PARTITIONS)])
        seen: Counter[int] = Counter()
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            for message in reader.consume(5000, timeout=1):
                if message.error() is None:
                    seen[int(message.value())] += 1
                else:
                    ended.add(message.partition())
        reader.close()
        return seen

    def wait_until_copied(self) -> Counter[int]:
        deadline = time.monotonic() + CAUGHT_UP_SECONDS_MAX
        while time.monotonic() < deadline:
            seen = self.output()
            if len(seen) >= self.sent:
                return seen
            assert self.copier.process.poll() is None, self.copier.lines[-5:]
            time.sleep(1)
        raise AssertionError(f"{len(seen)} of {self.sent} after {CAUGHT_UP_SECONDS_MAX} s: {self.copier.lines[-5:]}")

    def close(self) -> None:
        self.copier.kill()
        self.broker.kill()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


def kill_driver(stage: Stage, chance: random.Random) -> None:
    stage.copier.kill()
    stage.copier.start()


def kill_worker(stage: Stage, chance: random.Random) -> None:
    workers = stage.copier.workers()
    if workers:
        os.kill(chance.choice(workers), signal.SIGKILL)


def kill_broker(stage: Stage, chance: random.Random) -> None:
    stage.broker.kill()
    time.sleep(chance.uniform(0, 2))
    stage.broker.start()


def fail_commit(stage: Stage, chance: random.Random) -> None:
    """Take the transactional ids of the sink's tasks away, again and again for a second: commits find them gone."""
    until = time.monotonic() + 1
    with blocking.Admin(Settings.of({"bootstrap.servers": stage.servers})) as admin:
        while time.monotonic() < until:
            for task in range(PARTITIONS):
                with suppress(ApiError):  # another end is under way: the next round has it
                    admin.fence_producer(f"spark-sink-{stage.copier.query_id}-{task}")


FAULTS: list[Callable[[Stage, random.Random], None]] = [kill_worker, kill_broker, fail_commit, kill_driver]


def test_whatever_is_killed_every_record_comes_out_once(stage: Stage) -> None:
    seed = int(os.environ.get("BARNABAS_SPARK_SEED", "1"))
    chance = random.Random(seed)
    for number in range(RUNS):
        fault = FAULTS[number % len(FAULTS)]
        sender = threading.Thread(target=stage.send)
        sender.start()
        while not stage.copier.query_id:
            time.sleep(0.1)
        time.sleep(chance.uniform(0, 3))
        begun = time.monotonic()
        fault(stage, chance)
        sender.join()
        seen = stage.wait_until_copied()
        doubled = [value for value, count in seen.items() if count > 1]
        print(f"run {number + 1}: {fault.__name__}, all {stage.sent} once after {time.monotonic() - begun:.1f} s")
        assert not doubled, f"run {number + 1}, {fault.__name__}, seed {seed}: {len(doubled)} doubled, {doubled[:5]}"
        assert sorted(seen) == list(range(stage.sent))
    print(f"queries failed and started again: {sum(line.startswith('FAILED') for line in stage.copier.lines)}")
    for line in stage.copier.lines:
        print("  ", line)
