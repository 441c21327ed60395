"""Kafka's TransactionalMessageCopier as a process: it reads a topic, writes another, and commits both in transactions.

It says after every transaction how far it is. One that ends before its time is started again under the same
transactional id, as whoever runs it would. Used by the test that kills the broker under it.
"""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from tools.kafka_jars import java_command

MAIN = "org.apache.kafka.tools.TransactionalMessageCopier"
STARTS_MAX = 10
STOP_SECONDS_MAX = 20
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")


class Copier:
    """Copies one partition, or in a group what it is given, with random aborts, until nothing is left."""

    def __init__(self, bootstrap: str, source: str, target: str, number: int, log: Path, *, in_group: bool) -> None:
        group = f"copiers-of-{source}" if in_group else f"copier-{number}-of-{source}"
        words = {
            "--broker-list": bootstrap,
            "--input-topic": source,
            "--input-partition": str(number),
            "--output-topic": target,
            "--transactional-id": f"copier-{number}",
            "--consumer-group": group,
            "--transaction-size": "250",
        }
        flags = ["--enable-random-aborts", *(["--group-mode", "--use-group-metadata"] if in_group else [])]
        arguments = [part for pair in words.items() for part in pair]
        self._command = java_command(MAIN, *arguments, *flags, options=_QUICK_START)
        self._log = log
        self._copied_before = 0
        self._copied = 0
        self._lock = threading.Lock()  # nobody is started by one thread after the other has looked for whom to kill
        self._is_stopping = False
        self.starts = 0
        self.is_done = False
        self.failure = ""
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name=f"copier-{number}", daemon=True)
        self._thread.start()

    @property
    def copied(self) -> int:
        """Messages in transactions that it has committed and heard of."""
        return self._copied_before + self._copied

    def _run(self) -> None:
        while (process := self._started()) is not None:
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    self._copied = json.loads(line)["totalProcessed"]
            if process.wait() == 0:
                self.is_done = True
                return
        self.failure = f"a copier ended {self.starts} times:\n{self._log.read_text()[-2000:]}"

    def _started(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._is_stopping or self.starts == STARTS_MAX:
                return None
            self.starts += 1
            self._copied_before, self._copied = self.copied, 0
            with self._log.open("a") as log:
                self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
            return self._process

    def stop(self) -> None:
        with self._lock:
            self._is_stopping = True
        if self._process is not None:
            self._process.kill()
        self._thread.join(STOP_SECONDS_MAX)
