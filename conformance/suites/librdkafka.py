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

from conformance import security
from conformance.cluster import Cluster
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
_DELAYED = {**_SETTINGS, "group.initial.rebalance.delay.ms": "3000"}
# These make topics with three replicas.
_WITH_REPLICAS = {
    "0098_consumer_txn",
    "0101_fetch_from_follower",
    "0103_transactions",
    "0107_topic_recreate",
    "0111_delay_create_topics",
}
_ON_THREE = {name: value for name, value in _SETTINGS.items() if name != "broker.rack"}
# These need clients that sign in, each in its own way; what is in brackets makes a row of its own.
_SHARE = " (share groups)"
_SIGN_IN = {
    security.certificates: ["0097_ssl_verify"],
    security.plain: ["0135_sasl_credentials", f"0135_sasl_credentials{_SHARE}", "0142_reauthentication"],
    security.scram_over_tls: [
        "0135_sasl_credentials (SCRAM-SHA-512 over TLS)",
        "0142_reauthentication (SCRAM-SHA-512 over TLS)",
    ],
    security.tokens: [
        "0126_oauthbearer_oidc",
        f"0126_oauthbearer_oidc{_SHARE}",
        "0142_reauthentication (OAUTHBEARER)",
        f"0142_reauthentication{_SHARE}",
    ],
}
_SIGNED_IN = {test for tests in _SIGN_IN.values() for test in tests}
# Tests of which some parts are about share groups: the parts of each row, by the names of their functions.
_PARTS = {
    "0126_oauthbearer_oidc": ("do_test_produce_consumer", "do_test_OIDC"),
    f"0126_oauthbearer_oidc{_SHARE}": ("do_test_produce_share_consumer",),
    "0135_sasl_credentials": ("do_test:",),
    f"0135_sasl_credentials{_SHARE}": ("do_test_share",),
    "0142_reauthentication": ("do_test_consumer", "do_test_producer", "do_test_txn_producer", "do_test_reauth_failure"),
    f"0142_reauthentication{_SHARE}": ("do_test_share",),
    "0142_reauthentication (OAUTHBEARER)": ("do_test_consumer", "do_test_producer", "do_test_oauthbearer"),
}
_IN_A_GROUP = re.compile(r"subscribe\(|KafkaConsumer::create")
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
    """One leg per scenario, one for tests that need a delay, and those on three brokers, with and without sign-in."""
    chosen = [(test, wanted) for test, wanted in _broker_tests(librdkafka()) if test not in _SIGNED_IN]
    found = [
        Leg(
            {**_SETTINGS, **settings},
            [test for test, wanted in chosen if wanted == scenario and test not in _WITH_DELAY | _WITH_REPLICAS],
            partial(_run, scenario=scenario),
        )
        for scenario, settings in _SCENARIOS.items()
    ]
    found.append(Leg(_DELAYED, sorted(_WITH_DELAY), partial(_run, scenario="default")))
    for scenario, settings in _SCENARIOS.items():
        replicated = [test for test, wanted in chosen if wanted == scenario and test in _WITH_REPLICAS]
        found.append(Leg({**_ON_THREE, **settings}, replicated, partial(_run, scenario=scenario), is_cluster=True))
    signed_in = partial(_run, scenario="default")
    return [*found, *(Leg(_ON_THREE, tests, signed_in, True, how) for how, tests in _SIGN_IN.items())]


def group_legs() -> list[Leg]:
    """The tests whose clients are in groups, once more, with the protocol of KIP-848."""
    root = librdkafka()
    left_out = {*_SIGNED_IN, *_WITH_REPLICAS}
    tests = [
        (test, wanted)
        for test, wanted in _broker_tests(root)
        if test not in left_out and "share" not in test and _has_a_group(root / "tests", test[:4])
    ]
    run = partial(_run, protocol="consumer")
    found = [
        Leg(
            {**_SETTINGS, **more},
            [test for test, wanted in tests if wanted == scenario],
            partial(run, scenario=scenario),
        )
        for scenario, more in _SCENARIOS.items()
    ]
    on_three = [
        test for test, _ in _broker_tests(root) if test in _WITH_REPLICAS and _has_a_group(root / "tests", test[:4])
    ]
    return [*found, Leg(_ON_THREE, on_three, partial(run, scenario="default"), is_cluster=True)]


def _has_a_group(directory: Path, number: str) -> bool:
    return any(_IN_A_GROUP.search(source.read_text()) for source in directory.glob(f"{number}-*.c*"))


def _broker_tests(root: Path) -> Iterator[tuple[str, str]]:
    """The tests that need a broker, each with the scenario it belongs to."""
    source = (root / "tests" / "test.c").read_text()
    table = source[source.index("struct test tests[]") : source.index("{NULL}", source.index("struct test tests[]"))]
    for test, rest in _TABLE_ENTRY.findall(table + "{NULL}"):
        if not any(flag in f"{rest})" for flag in _LEFT_OUT):
            found = _SCENARIO.search(rest)
            yield test, found[1].split(",")[0] if found else "default"


def _run(peer: Peer, tests: Sequence[str], *, scenario: str, protocol: str = "classic") -> Iterator[Outcome]:
    how = peer.security if isinstance(peer, Cluster) else None
    configuration = peer.directory / "test.conf"
    lines = {
        "metadata.broker.list": peer.client_bootstrap if isinstance(peer, Cluster) else peer.bootstrap,
        "test.topic.random": "true",
        "test.timeout.multiplier": str(_TIMEOUT_MULTIPLIER),
        **(how.client_settings if how is not None else {}),
    }
    configuration.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    root = librdkafka()
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{root / 'src'}:{root / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(configuration),
        "TEST_KAFKA_VERSION": KAFKA_VERSION,
        "TEST_CONSUMER_GROUP_PROTOCOL": protocol,
        "KAFKA_PATH": str(_scripts()),
        "BROKERS": peer.bootstrap,
        **(how.environment if how is not None else {}),
    }
    logs = cache_directory("conformance", f"librdkafka-{protocol}-{peer.name}")
    runner = _Runner(root / "tests", scenario, environment, logs)
    for number, same_number in groupby(tests, key=lambda test: test[:4]):
        names = list(same_number)
        whole = [name for name in names if name not in _PARTS and " (" not in name]
        if whole:
            yield from runner.outcomes(number, whole)
        for name in names:
            if name not in whole:
                yield runner.outcome_of_parts(name)
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

    def outcome_of_parts(self, name: str) -> Outcome:
        """A row that is made of parts of a test: a pass if each of them was run, and passed."""
        test, started = name.split(" ")[0], time.monotonic()
        for part in _PARTS.get(name) or _PARTS[test]:
            is_complete, printed = self._run(test[:4], [test], part=part, seconds_max=FULL_TEST_SECONDS_MAX)
            row = {row.test: row for row in _rows(printed)}.get(test)
            seconds = time.monotonic() - started
            if row is None:
                reason = "the runner broke off" if is_complete else f"no result within {FULL_TEST_SECONDS_MAX} s"
                return Outcome(name, Verdict.FAIL if is_complete else Verdict.TIMEOUT, f"{part}: {reason}", seconds)
            if row.verdict is not Verdict.PASS:
                return Outcome(name, row.verdict, one_line(f"{part}: {row.reason}"), seconds)
            if _is_hollow(row, printed, has_parts=True):
                return Outcome(name, Verdict.SKIP, f"{part}: the test leaves it out", seconds)
        return Outcome(name, Verdict.PASS, "", time.monotonic() - started)

    def _run(
        self, number: str, names: Sequence[str], *flags: str, seconds_max: float = TEST_SECONDS_MAX, part: str = ""
    ) -> tuple[bool, str]:
        """Whether the runner came to its end, and what it printed; of one part of a test only, if it is named."""
        process = subprocess.Popen(
            ["nice", "./test-runner", "-p1", "-L", "-s", self.scenario, *flags],
            cwd=self.directory,
            env={**self.environment, "TESTS": number, **({"SUBTESTS": part} if part else {})},
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
        (self.logs / f"{number}-{self.scenario}{part.strip(':')}.log").write_text(printed)
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
