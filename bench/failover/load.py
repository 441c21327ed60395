"""One client's load: a sending program in a process of its own, and what it has said is acknowledged.

A client that dies, or is told that a record failed, fails the proof. `judge` compares what was acknowledged with what a
reader finds.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

ROOT = Path(__file__).parents[2]
SENDERS = Path(__file__).parent / "senders"
CLIENTS = ("librdkafka", "java", "barnabas", "aiokafka")
PARTITIONS = 3
PAUSE_MS = 10
REQUEST_TIMEOUT_MS = 30_000  # the default of most clients
PATIENCE_SECONDS = 90
END_SECONDS_MAX = 180
_JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128M")


class ProofFailed(Exception):
    """Something that was promised did not hold."""


class Acknowledged(NamedTuple):
    number: int
    sent_ns: int
    acknowledged_ns: int


class ClientLoad:
    """`with ClientLoad("java", servers) as load:` sends to its own topic until the block ends."""

    def __init__(
        self,
        client: str,
        bootstrap_servers: str,
        *,
        topic: str = "",
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        before: Sequence[str] = (),
    ) -> None:
        """``before`` is put in front of the program's command, to run it somewhere else."""
        self.client = client
        self.topic = topic or f"numbers-of-{client}"
        self.acknowledged: dict[tuple[int, int], int] = {}
        # Without an offset: librdkafka takes an answer to one batch for an answer to those before it that timed out.
        self.placeless: set[tuple[int, int]] = set()  # partition and number
        self.timeline: list[list[Acknowledged]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self.sent = -1
        words = (bootstrap_servers, self.topic, str(PARTITIONS), str(PAUSE_MS), str(request_timeout_ms))
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when the load is
        self._process = subprocess.Popen(
            [*before, *_command(client, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
        )
        self._thread = threading.Thread(target=self._listen, name=client, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "A":
                partition, offset, number, sent_ns, acknowledged_ns = map(int, rest.split())
                if offset < 0:
                    self.placeless.add((partition, number))
                elif (partition, offset) in self.acknowledged:
                    self.failures.append(f"offset {offset} of partition {partition} was acknowledged twice")
                else:
                    self.acknowledged[partition, offset] = number
                self.timeline[partition].append(Acknowledged(number, sent_ns, acknowledged_ns))
            elif kind == "E":
                self.sent = int(rest)
            else:
                self.failures.append(line)

    @property
    def acknowledged_count(self) -> int:
        return len(self.acknowledged) + len(self.placeless)

    def wait_since(self, mark_ns: int) -> float:
        """Until a record that was sent after the mark is acknowledged in every partition: seconds since the mark."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            times = [_first_since(line, mark_ns) for line in self.timeline]
            known = [each for each in times if each is not None]
            if len(known) == len(times):
                return (max(known) - mark_ns) / 1e9
            self.check()
            if time.monotonic() > deadline:
                raise ProofFailed(f"{self.client}: some partitions acknowledge nothing any more")
            time.sleep(0.01)

    def check(self) -> None:
        if self.failures:
            raise ProofFailed(f"{self.client}: {self.failures[:3]}")
        if self.sent < 0 and self._process.poll() is not None:
            self._errors.seek(0)
            raise ProofFailed(
                f"{self.client}: the program ended with {self._process.returncode}\n{self._errors.read()[-2000:]}"
            )

    def stop(self) -> None:
        """Send no more, and wait until everything that was sent is acknowledged."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(END_SECONDS_MAX)
        self._thread.join()
        self.check()
        if self.sent != self.acknowledged_count:
            raise ProofFailed(f"{self.client}: {self.sent} were sent, {self.acknowledged_count} acknowledged")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._errors.close()


def _first_since(timeline: list[Acknowledged], mark_ns: int) -> int | None:
    found = None
    for each in reversed(timeline):
        if each.sent_ns < mark_ns:
            break
        found = each.acknowledged_ns
    return found


def _command(client: str, words: tuple[str, ...]) -> list[str]:
    if client == "java":
        return java_command("Sender", *words, options=_JAVA_OPTIONS, classes=str(_classes()))
    return [sys.executable, "-m", f"bench.failover.senders.{client}", *words]


def _classes() -> Path:
    source = SENDERS / "Sender.java"
    directory = cache_directory("java", hashlib.sha256(source.read_bytes()).hexdigest()[:16])
    with locked("java-sender"):
        if not (directory / "Sender.class").exists():
            subprocess.run([program("javac"), "-cp", class_path(), "-d", str(directory), str(source)], check=True)
    return directory
