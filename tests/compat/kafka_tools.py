"""Apache Kafka's command-line tools for the tests: run one of its mains, get the exit code and everything it said.

Kafka's reader of log files is the judge of ours: it must find nothing to complain about. Called by tests marked `java`.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

TOOL_SECONDS_MAX = 120
RUNNER = Path(__file__).parent / "java" / "ToolRunner.java"
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")


def run_tool(main_class: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
    """Runs a main such as `org.apache.kafka.tools.TopicCommand`; the text is its standard output, then its errors."""
    command = java_command(main_class, *arguments, options=_QUICK_START)
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX)
    return done.returncode, done.stdout + done.stderr


def dump_log_segments(files: Iterable[Path | str], *flags: str) -> tuple[int, str]:
    """Kafka's own reading of segment files, indexes and snapshots: `--deep-iteration`, `--index-sanity-check` …"""
    names = ",".join(str(file) for file in files)
    return run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *flags)


class PatientTool:
    """One of Kafka's mains that is called many times: the virtual machine is started once."""

    def __init__(self, main_class: str) -> None:
        command = java_command("ToolRunner", main_class, options=_QUICK_START, classes=str(_runner_classes()))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=TOOL_SECONDS_MAX)

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and what it said on its standard output, then its errors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(arguments) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the tool has ended at {arguments}"
        row = json.loads(line)
        return int(row["code"]), str(row["text"])


def _runner_classes() -> Path:
    directory = cache_directory("java", hashlib.sha256(RUNNER.read_bytes()).hexdigest()[:16])
    with locked("java-tool-runner"):
        if not (directory / "ToolRunner.class").exists():
            command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(RUNNER)]
            subprocess.run(command, check=True, timeout=TOOL_SECONDS_MAX)
    return directory
