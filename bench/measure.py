"""What a broker costs, read from the system: CPU seconds, anonymous memory and disk reads of its whole process tree.

Page cache is not counted as a broker's memory, since the kernel gives it back; anonymous memory is what nobody else
can use. Also what the rest of the machine did meanwhile, so that a disturbed run can be told from a quiet one. Called
around every workload by `bench.run`; Linux only.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a process tree: all CPU it has used, and the anonymous memory it holds."""

    monotonic_seconds: float
    cpu_seconds: float
    machine_cpu_seconds: float
    anonymous_bytes: int
    disk_read_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What lies between two samples."""

    wall_seconds: float
    cpu_seconds: float
    machine_cpu_seconds: float
    anonymous_bytes: int
    disk_read_bytes: int

    @property
    def utilisation(self) -> float:
        """Cores in use: 1.0 is one core, all the time."""
        return self.cpu_seconds / self.wall_seconds if self.wall_seconds else 0.0

    def others_cores(self, client_cpu_seconds: float) -> float:
        """Cores that were taken by neither the broker nor the client: the noise of the machine."""
        others = self.machine_cpu_seconds - self.cpu_seconds - client_cpu_seconds
        return max(0.0, others / self.wall_seconds) if self.wall_seconds else 0.0


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in parentheses and may hold anything, so fields are counted from its end: state is first.
    return text[text.rindex(")") + 2 :].split()


def process_tree(root: int) -> list[int]:
    """The process and all that descend from it, the root first."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat_fields(int(entry.name))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    tree = [root]
    for pid in tree:
        tree.extend(sorted(children.get(pid, [])))
    return tree


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time of these processes, and of the children they have already buried."""
    ticks = 0
    for pid in pids:
        if (fields := _stat_fields(pid)) is not None:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS_PER_SECOND


def anonymous_bytes(pids: Iterable[int]) -> int:
    """Memory that belongs to these processes alone and to no file (RssAnon)."""
    total = 0
    for pid in pids:
        try:
            status = (_PROC / str(pid) / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
    return total


def disk_read_bytes(pids: Iterable[int]) -> int:
    """What these processes had fetched from the disk because the page cache did not hold it."""
    total = 0
    for pid in pids:
        try:
            lines = (_PROC / str(pid) / "io").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))
    return total


def _machine_cpu_seconds() -> float:
    fields = [int(field) for field in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / _TICKS_PER_SECOND


def sample(pids: Sequence[int]) -> Sample:
    return Sample(
        time.monotonic(), cpu_seconds(pids), _machine_cpu_seconds(), anonymous_bytes(pids), disk_read_bytes(pids)
    )


def cost(before: Sample, after: Sample) -> Cost:
    return Cost(
        wall_seconds=after.monotonic_seconds - before.monotonic_seconds,
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        machine_cpu_seconds=after.machine_cpu_seconds - before.machine_cpu_seconds,
        anonymous_bytes=after.anonymous_bytes,
        disk_read_bytes=after.disk_read_bytes - before.disk_read_bytes,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """The middle of several runs, and how far they lie apart."""

    median: float
    spread: float  # (largest − smallest) / median
    count: int


def summarise(values: Sequence[float]) -> Summary:
    median = statistics.median(values)
    spread = (max(values) - min(values)) / median if median else 0.0
    return Summary(median, spread, len(values))
