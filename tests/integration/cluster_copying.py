"""Copying processes that are killed and started again, and a reader of committed records that looks on.

`Copier` is the program beside this file under a supervisor; `Onlooker` is librdkafka's consumer, which has no part in
the copying.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

PROGRAM = Path(__file__).with_name("cluster_copy_program.py")


class Copier:
    """Started again under the same transactional id whenever it has ended."""

    def __init__(self, number: int, bootstrap: str, source: str, target: str, group: str, protocol: str) -> None:
        self._words = [bootstrap, source, target, group, protocol, f"{group}-copier-{number}"]
        self.committed = 0  # records in transactions whose commit it has heard of
        self.starts = 0
        self.restarts: Counter[str] = Counter()  # why it began anew within the process
        self.unexpected: list[str] = []
        self._is_stopping = False
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name=f"copier-{number}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopping:
            self.starts += 1
            command = [sys.executable, str(PROGRAM), *self._words, str(self.starts)]
            process = self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    kind, _, rest = line.rstrip("\n").partition(" ")
                    if kind == "C":
                        self.committed += int(rest)
                    else:
                        self.restarts[rest.partition(":")[0]] += 1
            if process.wait() != -signal.SIGKILL:
                self.unexpected.append(f"a copier ended with {process.returncode}")

    def signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(number)

    def stop(self) -> None:
        self._is_stopping = True
        self.signal(signal.SIGKILL)
        self._thread.join()


class Onlooker:
    """Reads what is committed, from the start, all the time."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.seen: Counter[bytes] = Counter()
        self.failure = ""
        self._is_over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "onlooker",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        self._thread = threading.Thread(target=self._run, name="onlooker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    self.seen[message.value()] += 1
                elif not error.retriable() and error.name() not in ("_TRANSPORT", "_ALL_BROKERS_DOWN"):
                    self.failure = str(error)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()
