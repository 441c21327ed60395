"""Runs one of Apache Kafka's command-line tools and looks for what its output must hold.

The tool is the judge, so all that counts is its exit code and its essentials: lines that any healthy broker produces,
given as regular expressions. Called by the suite of the tools, and by nobody else.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.kafka_jars import java_command

TOOL_SECONDS_MAX = 60
_OUTPUT_CHARACTERS_SHOWN_MAX = 300
# Nothing in these programs runs for long: a compiler that optimises would cost more than it saves.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M")


_ERROR = re.compile(r"(Exception|Error)\b.*: ")


class ToolFailed(Exception):
    """A tool ended badly, or did not say what it had to say."""


@dataclass(frozen=True, slots=True)
class KafkaTool:
    """The tools, pointed at one broker; `directory` is a place for their files."""

    bootstrap: str
    directory: Path
    data_dir: Path

    def run(self, main: str, words: str, *expected: str, stdin: str = "", absent: str = "") -> str:
        """Runs a main with its words (split at spaces); every regular expression must be found in what it says."""
        name = main.rsplit(".", 1)[-1]
        full = main if main.startswith("kafka.") else f"org.apache.kafka.tools.{main}"
        command = java_command(full, *words.split(), options=QUICK_START)
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            raise ToolFailed(f"{name} {words.split()[0]}: no end after {TOOL_SECONDS_MAX} s") from error
        said = done.stdout + done.stderr
        shown = " ".join(said[-_OUTPUT_CHARACTERS_SHOWN_MAX:].split())
        if done.returncode != 0:
            errors = [line.strip() for line in said.splitlines() if _ERROR.search(line)]
            raise ToolFailed(f"{name} ended with {done.returncode}: {errors[0] if errors else shown}")
        for pattern in expected:
            if re.search(pattern, said, re.MULTILINE) is None:
                raise ToolFailed(f"{name} did not say {pattern!r}: {shown}")
        if absent and re.search(absent, said, re.MULTILINE):
            raise ToolFailed(f"{name} said {absent!r}: {shown}")
        return said

    def ask(self, main: str, words: str, *expected: str, stdin: str = "", absent: str = "") -> str:
        """Like `run`, for the many tools that are told the broker by `--bootstrap-server`."""
        return self.run(main, f"--bootstrap-server {self.bootstrap} {words}", *expected, stdin=stdin, absent=absent)

    def file(self, name: str, text: str) -> Path:
        """A file for a tool to read."""
        path = self.directory / name
        path.write_text(text)
        return path

    def topic(self, name: str, *, partitions: int = 1) -> str:
        self.ask("TopicCommand", f"--create --topic {name} --partitions {partitions}", f"Created topic {name}")
        return name

    def filled(self, name: str, *, partitions: int = 1, records: int = 10) -> str:
        """A topic with records `0`, `1`, … in it."""
        topic = self.topic(name, partitions=partitions)
        lines = "".join(f"{number}\n" for number in range(records))
        self.ask("ConsoleProducer", f"--topic {topic}", stdin=lines)
        return topic
