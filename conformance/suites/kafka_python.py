"""kafka-python's own integration tests, from its source distribution, one pytest process per test.

The distribution lacks what starts brokers: for most tests the broker is there already, and those whose clients sign in
start one of their own, by `conformance.spawned`. The client under the tests is the one that is installed beside us, of
the same version. Called through the table of suites.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from bench.peers import Peer
from tools.cache import cache_directory

from conformance.fetched import pypi_source, run_quietly
from conformance.outcome import Leg, Outcome, Verdict, one_line
from conformance.spawned import SERVICE, write_servers

TEST_SECONDS_MAX = 120
KAFKA_VERSION = "4.3"  # the newest that this client knows of
_SETTINGS = {
    "node.id": "0",  # the tests name it
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
_PYTEST = ("-m", "pytest", "-c", os.devnull, "-p", "no:randomly", "-p", "no:cacheprovider", "--rootdir", ".")
# These start brokers of their own, with TLS or sign-in.
_WITH_OWN_BROKERS = ("test_sasl_integration", "test_ssl_integration")
_COLLECTED = re.compile(r"^test/integration/(\S+::\S.*)$", re.MULTILINE)
_NOT_IN_A_NAME = re.compile(r"[^\w.]+")


def legs() -> list[Leg]:
    workspace = unpacked()
    listed = run_quietly([sys.executable, *_PYTEST, "--collect-only", "-q", "test/integration"], cwd=workspace)
    tests = _COLLECTED.findall(listed)
    own = [test for test in tests if test.startswith(_WITH_OWN_BROKERS)]
    return [leg([test for test in tests if test not in own]), Leg({}, own, partial(_run, brings_brokers=True))]


def leg(tests: Sequence[str]) -> Leg:
    """Tests that share a broker, by name; one that the distribution does not have fails."""
    return Leg(_SETTINGS, tests, partial(_run, brings_brokers=False))


def unpacked() -> Path:
    """The tests without the client that they came with, and with the module that is missing."""
    version = importlib.metadata.version("kafka-python")
    source = pypi_source("kafka-python", version)
    workspace = cache_directory("kafka-python-tests", version)
    shutil.copytree(source / "test", workspace / "test", dirs_exist_ok=True)
    (workspace / "test" / "__init__.py").touch()
    (workspace / "test" / "service.py").write_text(SERVICE)
    (workspace / "servers" / KAFKA_VERSION / "kafka-bin").mkdir(parents=True, exist_ok=True)
    return workspace


def _run(peer: Peer, tests: Sequence[str], *, brings_brokers: bool) -> Iterator[Outcome]:
    workspace = unpacked()
    environment = {
        **os.environ,
        "KAFKA_VERSION": KAFKA_VERSION,
        "PROJECT_ROOT": str(workspace),
        "PYTHONPATH": str(workspace),
    }
    if brings_brokers:
        environment["KAFKA_ROOT"] = str(write_servers(workspace, KAFKA_VERSION, peer.name))
    else:
        environment["KAFKA_URI"] = f"kafka://{peer.bootstrap}"
    logs = cache_directory("conformance", f"kafka-python-{peer.name}")
    report = peer.directory / "report.xml"
    for test in tests:
        started = time.monotonic()
        report.unlink(missing_ok=True)
        command = [sys.executable, *_PYTEST, "-q", "--tb=short", f"--junitxml={report}", f"test/integration/{test}"]
        with (logs / (_NOT_IN_A_NAME.sub("-", test) + ".log")).open("w") as log:
            try:
                subprocess.run(
                    command,
                    cwd=workspace,
                    env=environment,
                    stdout=log,
                    stderr=log,
                    timeout=TEST_SECONDS_MAX,
                    check=False,
                )
                verdict, reason = _verdict(report)
            except subprocess.TimeoutExpired:
                verdict, reason = Verdict.TIMEOUT, f"no result within {TEST_SECONDS_MAX} s"
        yield Outcome(test, verdict, reason, time.monotonic() - started)


def _verdict(report: Path) -> tuple[Verdict, str]:
    """What pytest wrote of its one test."""
    if not report.exists():
        return Verdict.FAIL, "pytest broke off"
    case = ElementTree.parse(report).find(".//testcase")
    if case is None:
        return Verdict.FAIL, "pytest ran nothing"
    for word in ("failure", "error"):
        if (found := case.find(word)) is not None:
            return Verdict.FAIL, one_line(found.get("message", ""))
    if (skipped := case.find("skipped")) is not None and skipped.get("type") != "pytest.xfail":
        return Verdict.SKIP, one_line(skipped.get("message", ""))
    return Verdict.PASS, ""
