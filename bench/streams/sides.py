"""The four sides: how each is started for one workload, and which of the workloads it has."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.cache import cache_directory, locked
from tools.kafka_jars import java_command, kafka_libraries, program, streams_libraries

from bench.measure import Sample, process_tree, sample
from bench.streams.workloads import WORKLOADS

__all__ = ["SIDES", "Side", "supports"]

HERE: Final = Path(__file__).parent
STOP_SECONDS_MAX: Final = 30
PACKAGES: Final = ("quixstreams==3.28.1", "faust-streaming==0.15.3")
SIDES: Final = ("barnabas", "kafka", "quix", "faust")
_MISSING: Final = {("quix", "table-table"), ("faust", "stream-stream")}


def supports(side: str, workload: str) -> bool:
    """Whether a side has a workload."""
    return workload in WORKLOADS and (side, workload) not in _MISSING


@dataclass
class Side:
    """One side with one workload: its processes, which can be killed and started again."""

    name: str
    workload: str
    servers: str
    directory: Path
    cores: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def group(self) -> str:
        """The consumer group whose offsets show how far the side has read."""
        return f"{self.name}-{self.workload}"

    def start(self) -> None:
        """Start the side: threads for Java and Spark, a process for each core for the others."""
        count = 1 if self.name in ("barnabas", "kafka") else self.cores
        for number in range(count):
            log = (self.directory / f"{self.name}-{number}.log").open("ab")
            with log:
                self.processes.append(
                    subprocess.Popen(
                        self._command(number),
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        preexec_fn=self._pin,
                    )
                )

    def sample(self) -> Sample:
        """What all processes of the side have used so far."""
        return sample([pid for process in self.processes for pid in process_tree(process.pid)])

    def end(self, *, hard: bool = False) -> None:
        """Stop the side; ``hard`` is a crash."""
        for process in self.processes:
            tree = process_tree(process.pid)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL if hard else signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS_MAX)
            for pid in tree:  # Spark's workers have sessions of their own
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
        self.processes.clear()

    def log(self) -> str:
        """The last lines that the side has printed."""
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.directory.glob(f"{self.name}-*.log"))

    def _pin(self) -> None:
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: self.cores]))

    def _command(self, number: int) -> Sequence[str]:
        state = self.directory / f"{self.name}-state-{number}"
        if self.name == "barnabas":
            command = [sys.executable, "-m", "barnabas", "run", str(HERE / "apps.py"), self.group, "-b", self.servers]
            return [*command, "--master", f"local[{self.cores}]", "--checkpoints", str(state)]
        if self.name == "kafka":
            return _java(self.servers, self.workload, str(state), str(self.cores))
        return [str(_python()), str(HERE / f"{self.name}_side.py"), self.servers, self.workload, str(state)]


def _java(*arguments: str) -> list[str]:
    source = HERE / "java" / "StreamsPeer.java"
    libraries = f"{streams_libraries()}/*:{kafka_libraries()}/*"
    classes = cache_directory("java", hashlib.sha256(source.read_bytes()).hexdigest()[:16])
    with locked("streams-peer"):
        if not (classes / "StreamsPeer.class").exists():
            command = [program("javac"), "-cp", libraries, "-d", str(classes), str(source)]
            subprocess.run(command, check=True)
    return java_command("StreamsPeer", *arguments, options=("-Xmx2G",), classes=f"{classes}:{libraries}")


def _python() -> Path:
    """The interpreter of an environment with the Python peers."""
    directory = cache_directory("streams-peers", "-".join(PACKAGES).replace("=", ""))
    with locked("streams-peers"):
        if not (directory / ".complete").exists():
            subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
            subprocess.run([str(directory / "bin" / "pip"), "install", "--quiet", *PACKAGES], check=True)
            (directory / ".complete").touch()
    return directory / "bin" / "python"
