"""Runs an application twice on one broker, by Spark and by Kafka Streams in Java, and compares the two outputs.

Java's output is complete when it equals ours: a live application has no end. So the comparison waits, and a difference
is what remains when the time is over.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from tools.cache import cache_directory, locked
from tools.kafka_jars import java_command, program, streams_libraries

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import BrokerProcess
from conformance.streams.applications.inputs import INPUTS, PARTITIONS, Round

__all__ = ["compare"]

HERE: Final = Path(__file__).parent
EXAMPLES: Final = HERE.parents[2] / "examples" / "streams"
COMPILE_SECONDS_MAX: Final = 300
RUN_SECONDS_MAX: Final = 600
WAIT_SECONDS_MAX: Final = 240
SHOWN_MAX: Final = 5


def compare(name: str, *, seed: int, records: int) -> str | None:
    """Return the difference between the two outputs of an application, or None."""
    make, topics, written = INPUTS[name]
    with tempfile.TemporaryDirectory() as directory, BrokerProcess(Path(directory, "broker")) as broker:
        servers = broker.bootstrap_servers
        with blocking.Admin(Settings.of({"bootstrap.servers": servers})) as admin:
            for topic in (*topics, written, f"java-{written}"):
                admin.create_topic(NewTopic(topic, PARTITIONS))
        java = subprocess.Popen(
            _java(name, servers, Path(directory, "state")), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            for each in make(Random(seed), records):
                _produce(servers, each)
                _wait(servers, f"java-{written}", each.results)
            _run_on_spark(name, servers, Path(directory, "checkpoints"))
            return _difference(name, servers, written)
        finally:
            assert java.stdin is not None
            java.stdin.close()
            try:
                java.wait(60)
            except subprocess.TimeoutExpired:
                java.kill()
                java.wait()


def _produce(servers: str, given: Round) -> None:
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": servers})) as producer:
        for each in sorted(given.records, key=lambda each: each.timestamp):
            value = None if each.value is None else each.value.encode()
            producer.send(
                each.topic, value, key=each.key.encode(), timestamp_ms=each.timestamp, partition=each.partition
            )


def _wait(servers: str, topic: str, results: int) -> None:
    """Wait until Kafka Streams has joined so many pairs; results without a partner come later, and are not counted."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        rows = blocking.read(topic, bootstrap_servers=servers, isolation_level="read_committed").to_pylist()
        if sum(b"null" not in (row["value"] or b"") for row in rows) >= results:
            return
        assert time.monotonic() < deadline, f"Kafka Streams has written less than {results} results to {topic}"
        time.sleep(0.5)


def _java(name: str, servers: str, state: Path) -> list[str]:
    libraries, source = streams_libraries(), HERE / "Applications.java"
    classes = cache_directory("java", hashlib.sha256(source.read_bytes()).hexdigest()[:16])
    with locked("streams-applications"):
        if not (classes / "Applications.class").exists():
            command = [program("javac"), "-cp", f"{libraries}/*", "-d", str(classes), str(source)]
            subprocess.run(command, check=True, timeout=COMPILE_SECONDS_MAX)
    options = ("-Xmx512M", "-XX:+UseSerialGC")
    return java_command("Applications", name, servers, str(state), options=options, classes=f"{classes}:{libraries}/*")


def _run_on_spark(name: str, servers: str, checkpoints: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "run", str(EXAMPLES / f"{name}.py"), "--once", "-b", servers]
    command += ["--master", "local[2]", "--checkpoints", str(checkpoints)]
    subprocess.run(command, check=True, timeout=RUN_SECONDS_MAX, stdout=subprocess.DEVNULL)


def _difference(name: str, servers: str, topic: str) -> str | None:
    ours = _output(name, servers, topic)
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        theirs = _output(name, servers, f"java-{topic}")
        if theirs == ours and ours:
            return None
        if time.monotonic() > deadline:
            return f"{name}: only Kafka has {_shown(theirs - ours)}; only Barnabas has {_shown(ours - theirs)}"
        time.sleep(1)


def _output(name: str, servers: str, topic: str) -> Counter[tuple[bytes | None, bytes | None]]:
    """The results: of a join all of them, of a table the newest row of each key."""
    rows = blocking.read(topic, bootstrap_servers=servers, isolation_level="read_committed").to_pylist()
    found = [(row["key"], row["value"]) for row in sorted(rows, key=lambda row: (row["partition"], row["offset"]))]
    return Counter(found if name == "paid_orders" else dict(found).items())


def _shown(results: Counter[tuple[bytes | None, bytes | None]]) -> str:
    shown = ", ".join(map(repr, list(results)[:SHOWN_MAX]))
    return f"{results.total()} results ({shown})" if results else "none"
