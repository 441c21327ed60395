"""librdkafka's own tests: its runner, one process per test number, the summary's rows as verdicts.

The runner chooses by number, and some numbers stand for several tests, so a process may give several rows; each is
matched by its exact name. A hang would take the whole runner with it, hence a process each and a time limit. Tests that
use no broker are left out. Called through the table of suites.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from bench.peers import Peer
from tools.cache import cache_directory
from tools.kafka_jars import java_command

from conformance.librdkafka_build import librdkafka
from conformance.outcome import Leg, Outcome, Verdict, one_line

TEST_SECONDS_MAX = 150
FULL_TEST_SECONDS_MAX = 300
KAFKA_VERSION = "4.2.0"  # the newest that the tests know of; share groups are tested from here on
_SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
    "broker.rack": "RACK1",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",  # clients are anonymous, and the tests deny them things
    "allow.everyone.if.no.acl.found": "true",
}
_SCENARIOS: dict[str, dict[str, str]] = {"default": {}, "noautocreate": {"auto.create.topics.enable": "false"}}
# These count rebalances, and count on members that come together to meet in the first one.
_WITH_DELAY = {"0102_static_group_rebalance", "0118_commit_rebalance"}
# A machine that does other things besides is no reason to fail; a hang still is.
_TIMEOUT_MULTIPLIER = 2
_TABLE_ENTRY = re.compile(r"_TEST\(\s*(\d{4}_\w+),(.*?)\)(?=,\s*(?:_TEST|#|\{NULL|/\*))", re.DOTALL)
_SCENARIO = re.compile(r'\.scenario\s*=\s*"([\w,]+)"')
_LEFT_OUT = ("TEST_F_LOCAL", "TEST_F_MANUAL", "TEST_F_KNOWN_ISSUE,", "TEST_F_KNOWN_ISSUE)")
_ROW = re.compile(r"^\|\S* (\S+) +\| +(\w+) \| +([\d.]+)s \S*?\|(.*)$")
_FINISHED = re.compile(r"/ +([\d.]+)s\] =+ Test (\w+) (PASSED|FAILED)")
_FAILED = re.compile(r'^### Test "(\d{4}_\w+)[^"\n]*" failed at .*\n(.*)$', re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_VERDICTS = {"PASSED": Verdict.PASS, "FAILED": Verdict.FAIL, "SKIPPED": Verdict.SKIP}
# The tests call these scripts of Kafka's distribution.
_SCRIPTS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
}


def legs() -> list[Leg]:
    """One leg per scenario, and one for the tests that need the delay before the first rebalance."""
    chosen = list(_broker_tests(librdkafka()))
    found = [
        Leg(
            {**_SETTINGS, **settings},
            [test for test, wanted in chosen if wanted == scenario and test not in _WITH_DELAY],
            partial(_run, scenario=scenario),
        )
        for scenario, settings in _SCENARIOS.items()
    ]
    delayed = {**_SETTINGS, "group.initial.rebalance.delay.ms": "3000"}
    return [*found, Leg(delayed, sorted(_WITH_DELAY), partial(_run, scenario="default"))]


def _broker_tests(root: Path) -> Iterator[tuple[str, str]]:
    """The tests that need a broker, each with the scenario it belongs to."""
    source = (root / "tests" / "test.c").read_text()
    table = source[source.index("struct test tests[]") : source.index("{NULL}", source.index("struct test tests[]"))]
    for test, rest in _TABLE_ENTRY.findall(table + "{NULL}"):
        if not any(flag in f"{rest})" for flag in _LEFT_OUT):
            found = _SCENARIO.search(rest)
            yield test, found[1].split(",")[0] if found else "default"


def _run(peer: Peer, tests: Sequence[str], *, scenario: str) -> Iterator[Outcome]:
    configuration = peer.directory / "test.conf"
    lines = (
        f"metadata.broker.list={peer.bootstrap}",
        "test.topic.random=true",
        f"test.timeout.multiplier={_TIMEOUT_MULTIPLIER}",
    )
    configuration.write_text("".join(f"{line}\n" for line in lines))
    root = librdkafka()
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root / 'src'}:{root / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(configuration),
        "TEST_KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_PATH": str(_scripts()),
        "BROKERS": peer.bootstrap,
    }
    runner = _Runner(root / "tests", scenario, environment, cache_directory("conformance", f"librdkafka-{peer.name}"))
    for number, same_number in groupby(tests, key=lambda test: test[:4]):
        yield from runner.outcomes(number, list(same_number))
    for left in (root / "tests").glob("stats_*.json"):
        left.unlink()


@dataclass(frozen=True, slots=True)
class _Runner:
    """librdkafka's runner, pointed at one broker; what it prints is kept in `logs`."""

    directory: Path
    scenario: str
    environment: Mapping[str, str]
    logs: Path

    def outcomes(self, number: str, names: Sequence[str]) -> Iterator[Outcome]:
        started = time.monotonic()
        is_complete, printed = self._run(number, names, "-Q")
        if any(_is_hollow(row, printed, self._has_parts(number)) for row in _rows(printed) if row.test in names):
            is_complete, printed = self._run(number, names, seconds_max=FULL_TEST_SECONDS_MAX)
        found = {row.test: row for row in _rows(printed)}
        seconds = time.monotonic() - started
        missing = (
            (Verdict.FAIL, "the runner broke off")
            if is_complete
            else (Verdict.TIMEOUT, f"no result within {seconds:.0f} s")
        )
        for name in names:
            yield found.get(name) or Outcome(name, *missing, seconds)

    def _run(
        self, number: str, names: Sequence[str], *flags: str, seconds_max: float = TEST_SECONDS_MAX
    ) -> tuple[bool, str]:
        """Whether the runner came to its end, and what it printed."""
        process = subprocess.Popen(
            ["nice", "./test-runner", "-p1", "-L", "-s", self.scenario, *flags],
            cwd=self.directory,
            env={**self.environment, "TESTS": number},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        is_complete = True
        try:
            printed, _ = process.communicate(timeout=seconds_max * len(names))
        except subprocess.TimeoutExpired:
            is_complete = False
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
        finally:
            # Told to stop, we leave no runner behind.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        printed = _COLOUR.sub("", printed)
        (self.logs / f"{number}-{self.scenario}.log").write_text(printed)
        return is_complete, printed

    def _has_parts(self, number: str) -> bool:
        """Whether the source of a test is made of parts, which may be left out."""
        return any("SUB_TEST(" in source.read_text() for source in self.directory.glob(f"{number}-*.c*"))


def _rows(printed: str) -> list[Outcome]:
    """The rows of the summary, and, where a hang or a crash kept it from coming, what was known by then."""
    rows = {test: Outcome(test, Verdict.FAIL, one_line(reason)) for test, reason in _FAILED.findall(printed)}
    for line in printed.splitlines():
        if finished := _FINISHED.search(line):
            rows.setdefault(finished[2], Outcome(finished[2], _VERDICTS[finished[3]], "", float(finished[1])))
        elif row := _ROW.match(line):
            rows[row[1]] = Outcome(row[1], _VERDICTS.get(row[2], Verdict.FAIL), one_line(row[4]), float(row[3]))
    return list(rows.values())


def _is_hollow(row: Outcome, printed: str, has_parts: bool) -> bool:
    """The quick mode leaves parts out, of some tests all of them, and calls that a pass: those are run in full."""
    if row.verdict is Verdict.PASS:
        return has_parts and re.search(rf"^\[{row.test} */ .*?\] \[ ", printed, re.MULTILINE) is None
    return row.verdict is Verdict.SKIP and "quick mode" in row.reason


def _scripts() -> Path:
    """A directory that looks like Kafka's distribution, as far as the tests look."""
    directory = cache_directory("kafka-scripts")
    (directory / "bin").mkdir(exist_ok=True)
    for script, main in _SCRIPTS.items():
        words = " ".join(f"'{word}'" for word in java_command(main, options=("-XX:TieredStopAtLevel=1", "-Xmx256M")))
        path = directory / "bin" / script
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)
    return directory
