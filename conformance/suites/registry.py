"""Clients of schema registries for Node and Go against the registry: a test per client and feature.

The programs are `conformance/clients/registry.js` and `conformance/clients/franz-go-sr`. The registry runs beside
whatever broker the leg has. Called through the table of suites.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence

from bench.peers import Peer

from barnabas.testing import RegistryProcess
from conformance.outcome import Leg, Outcome, Verdict, one_line
from conformance.suites.clients import go_program, node_program

TEST_SECONDS_MAX = 60
PACKAGES = ("@kafkajs/confluent-schema-registry@3.9.0", "@confluentinc/schemaregistry@1.10.1")
GO_MODULE = "github.com/twmb/franz-go/pkg/sr@v1.8.0"
GO_TESTS = (
    "franz-go-register",
    "franz-go-compatibility",
    "franz-go-deletes",
    "franz-go-references",
    "franz-go-mode",
    "franz-go-serde",
)
TESTS = (
    *GO_TESTS,
    "kafkajs-avro",
    "kafkajs-json",
    "kafkajs-protobuf",
    "confluent-avro",
    "confluent-json",
    "confluent-admin",
)


def legs() -> list[Leg]:
    return [Leg({}, TESTS, _run)]


def _run(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    with RegistryProcess(peer.bootstrap) as registry:
        for test in tests:
            in_go = test in GO_TESTS
            command = go_program("franz-go-sr", GO_MODULE) if in_go else node_program("registry.js", *PACKAGES)
            started = time.monotonic()
            words = [*command, test, registry.url, f"{test}-{uuid.uuid4().hex[:8]}"]
            try:
                ran = subprocess.run(words, capture_output=True, text=True, timeout=TEST_SECONDS_MAX, check=False)
            except subprocess.TimeoutExpired:
                yield Outcome(test, Verdict.TIMEOUT, "", time.monotonic() - started)
                continue
            verdict = Verdict.PASS if ran.returncode == 0 else Verdict.FAIL
            reason = "" if ran.returncode == 0 else one_line(ran.stderr)
            yield Outcome(test, verdict, reason, time.monotonic() - started)
