"""Apache Kafka's command-line tools for the tests: run one of its mains, get the exit code and everything it said.

Kafka's reader of log files is the judge of ours: it must find nothing to complain about. Called by tests marked `java`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.kafka_jars import java_command

TOOL_SECONDS_MAX = 120


def run_tool(main_class: str, *arguments: str, stdin: str = "") -> tuple[int, str]:
    """Runs a main such as `org.apache.kafka.tools.TopicCommand`; the text is its standard output, then its errors."""
    command = java_command(main_class, *arguments, options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M"))
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX)
    return done.returncode, done.stdout + done.stderr


def dump_log_segments(files: Iterable[Path | str], *flags: str) -> tuple[int, str]:
    """Kafka's own reading of segment files, indexes and snapshots: `--deep-iteration`, `--index-sanity-check` …"""
    names = ",".join(str(file) for file in files)
    return run_tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *flags)
