"""A stage for the tests that kill: a broker, a driver that copies one topic into another, and a judge.

The driver is ``copying.py`` or ``stateful_counting.py`` in a process of its own; the judge is librdkafka, which knows
nothing of what is tested.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess

RECORDS = 1500
CAUGHT_UP_SECONDS_MAX = 300.0
PARTITIONS = 3
APPLICATIONS = {"stateful_counting.py": "counting", "stateful_everything.py": "everything-killed"}
MORE_TOPICS = {"stateful_everything.py": ("joined", "rows", "closed")}  # written by the program besides the output


class Copier:
    """The driver in a process group of its own, so that its Java dies with it."""

    def __init__(self, servers: str, directory: Path, master: str, program: str) -> None:
        self._command = [sys.executable, str(Path(__file__).with_name(program)), servers, "input", "output"]
        self._command += [str(directory / "checkpoint"), master]
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

    def processes(self, module: str) -> list[int]:
        """Those of Spark's Python processes that run a module of Spark's for this driver, by number."""
        short = module.rpartition(".")[2].removeprefix("python_streaming_")  # as the fork server names them
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                session = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3])
                name = (entry / "comm").read_text().strip()
            except (OSError, IndexError):
                continue
            if session == self.process.pid and (name == short or module.encode() in words):
                found.append(int(entry.name))
        return sorted(found)


class Stage:
    def __init__(self, directory: Path, master: str = "local[2]", program: str = "copying.py") -> None:
        self.broker = BrokerProcess(directory / "broker", settings={"barnabas.log.level": "ERROR"})
        self.broker.start()
        self.servers = self.broker.bootstrap_servers
        with blocking.Admin(Settings.of({"bootstrap.servers": self.servers})) as admin:
            for topic in ("input", "output", *MORE_TOPICS.get(program, ())):
                admin.create_topic(NewTopic(topic, PARTITIONS))
        self.is_application = program in APPLICATIONS
        self._application_id = APPLICATIONS.get(program, "")
        self.checkpoint = directory / "checkpoint"
        self.copier = Copier(self.servers, directory, master, program)
        self.copier.start()
        self.sent = 0
        self._sending = threading.Lock()  # numbers follow one another

    def transactional_id(self, task: int) -> str:
        return f"{self._application_id}-{task}" if self.is_application else f"spark-sink-{self.copier.query_id}-{task}"

    def send(self) -> None:
        with self._sending, blocking.Producer(ProducerSettings.of({"bootstrap.servers": self.servers})) as producer:
            for start in range(self.sent, self.sent + RECORDS, 300):
                numbers = [str(number).encode() for number in range(start, start + 300)]
                producer.send_many("input", [(number, number) for number in numbers])
            self.sent += RECORDS

    def output(self) -> Counter[int]:
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

    def records(self, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
        """Partition, key, value and timestamp of the committed records of a topic, in order of the offsets."""
        table = blocking.read(topic, bootstrap_servers=self.servers, isolation_level="read_committed")
        rows = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["offset"]))
        return [
            (row["partition"], row["key"], row["value"], int(row["timestamp"].timestamp() * 1000 + 0.5)) for row in rows
        ]

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
