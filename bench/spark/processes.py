"""What one side of the comparison costs the machine: processor time and memory of its driver, Java and workers.

A side runs in a session of its own, so that all of its processes are found by that, whoever has started them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    java_mb: float
    python_mb: float
    python_count: int


def processor_seconds() -> float:
    """Of all processes, those that have ended among them."""
    ticks = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == os.getsid(0):
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory() -> Memory:
    """What they hold, pages that they share counted once."""
    java = python = 0.0
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (entry / "stat").read_text().rsplit(")", 1)
            if int(fields.split()[3]) != os.getsid(0):
                continue
            lines = (entry / "smaps_rollup").read_text().splitlines()
            held = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
        except (OSError, StopIteration, IndexError):
            continue
        if name.endswith("(java"):
            java += held
        else:
            python += held
            count += 1
    return Memory(java, python, count)
