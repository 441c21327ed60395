"""librdkafka's runner: one process per test number, or per part of a test; the rows of its summary become verdicts.

The runner chooses by number, and some numbers stand for several tests, so a process may give several rows; each is
matched by its exact name. A hang would take the whole runner with it, hence a process each and a time limit. Called by
the suite of the same name.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.cache import cache_directory
from tools.kafka_jars import java_command, kafka_libraries

from conformance.outcome import Outcome, Verdict, one_line

TEST_SECONDS_MAX = 150
FULL_TEST_SECONDS_MAX = 300
SHARE = " (share groups)"
# Tests of which some parts are about share groups: the parts of each row, by the names of their functions.
PARTS = {
    "0126_oauthbearer_oidc": ("do_test_produce_consumer", "do_test_OIDC"),
    f"0126_oauthbearer_oidc{SHARE}": ("do_test_produce_share_consumer",),
    "0135_sasl_credentials": ("do_test:",),
    f"0135_sasl_credentials{SHARE}": ("do_test_share",),
    "0142_reauthentication": ("do_test_consumer", "do_test_producer", "do_test_txn_producer", "do_test_reauth_failure"),
    f"0142_reauthentication{SHARE}": ("do_test_share",),
    "0142_reauthentication (OAUTHBEARER)": ("do_test_consumer", "do_test_producer", "do_test_oauthbearer"),
}
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
    "kafka-run-class.sh": "",  # the main comes with the call
}


@dataclass(frozen=True, slots=True)
class Runner:
    """librdkafka's runner, pointed at one broker; what it prints is kept in `logs`."""

    directory: Path
    scenario: str
    environment: Mapping[str, str]
    logs: Path

    def outcomes(self, number: str, names: Sequence[str]) -> Iterator[Outcome]:
        started = time.monotonic()
        is_complete, printed = self._run(number, names, "-Q")
        if any(is_hollow(row, printed, self._has_parts(number)) for row in rows(printed) if row.test in names):
            is_complete, printed = self._run(number, names, seconds_max=FULL_TEST_SECONDS_MAX)
        found = {row.test: row for row in rows(printed)}
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
        for part in PARTS.get(name) or PARTS[test]:
            is_complete, printed = self._run(test[:4], [test], part=part, seconds_max=FULL_TEST_SECONDS_MAX)
            row = {row.test: row for row in rows(printed)}.get(test)
            seconds = time.monotonic() - started
            if row is None:
                reason = "the runner broke off" if is_complete else f"no result within {FULL_TEST_SECONDS_MAX} s"
                return Outcome(name, Verdict.FAIL if is_complete else Verdict.TIMEOUT, f"{part}: {reason}", seconds)
            if row.verdict is not Verdict.PASS:
                return Outcome(name, row.verdict, one_line(f"{part}: {row.reason}"), seconds)
            if is_hollow(row, printed, has_parts=True):
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


def rows(printed: str) -> list[Outcome]:
    """The rows of the summary, and, where a hang or a crash kept it from coming, what was known by then."""
    rows = {test: Outcome(test, Verdict.FAIL, one_line(reason)) for test, reason in _FAILED.findall(printed)}
    for line in printed.splitlines():
        if finished := _FINISHED.search(line):
            rows.setdefault(finished[2], Outcome(finished[2], _VERDICTS[finished[3]], "", float(finished[1])))
        elif row := _ROW.match(line):
            rows[row[1]] = Outcome(row[1], _VERDICTS.get(row[2], Verdict.FAIL), one_line(row[4]), float(row[3]))
    return list(rows.values())


def is_hollow(row: Outcome, printed: str, has_parts: bool) -> bool:
    """The quick mode leaves parts out, of some tests all of them, and calls that a pass: those are run in full."""
    if row.verdict is Verdict.PASS:
        return has_parts and re.search(rf"^\[{row.test} */ .*?\] \[ ", printed, re.MULTILINE) is None
    return row.verdict is Verdict.SKIP and "quick mode" in row.reason


def kafka_scripts() -> Path:
    """What looks like Kafka's distribution as far as the tests look; some bring Java programs of their own."""
    directory = cache_directory("kafka-scripts")
    (directory / "bin").mkdir(exist_ok=True)
    if not (directory / "libs").exists():
        (directory / "libs").symlink_to(kafka_libraries())
    for script, main in _SCRIPTS.items():
        words = java_command(main, options=("-XX:TieredStopAtLevel=1", "-Xmx256M"))
        where = words.index("-cp") + 1
        quoted = [shlex.quote(word) for word in words if word]
        quoted[where] = f'"$CLASSPATH:{words[where]}"'
        path = directory / "bin" / script
        path.write_text(f'#!/bin/sh\nexec {" ".join(quoted)} "$@"\n')
        path.chmod(0o755)
    return directory
