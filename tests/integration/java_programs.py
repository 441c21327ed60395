"""Programs with Kafka's own Java client for the tests over clusters: compiled once, run as a process, heard by lines.

Each ends when its input does. What the lines say is between a program in ``java`` and who listens.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

SOURCES = Path(__file__).with_name("java")
COMPILE_SECONDS_MAX = 120
END_SECONDS_MAX = 60
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128M")


class JavaProgram:
    def __init__(self, name: str, *words: str) -> None:
        command = java_command(name, *words, options=_OPTIONS, classes=str(_classes(SOURCES / f"{name}.java")))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def lines(self) -> Iterator[tuple[str, str]]:
        """The first word of each line, and the rest of it; until the program has ended."""
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                kind, _, rest = line.rstrip("\n").partition(" ")
                yield kind, rest
        self._process.wait()

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _classes(source: Path) -> Path:
    directory = cache_directory("java", hashlib.sha256(source.read_bytes()).hexdigest()[:16])
    with locked(f"java-{source.stem}"):
        if not (directory / f"{source.stem}.class").exists():
            command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(source)]
            subprocess.run(command, check=True, timeout=COMPILE_SECONDS_MAX)
    return directory
