"""The command line answers at once: ``--help`` under 150 ms, ``topic list`` under 200 ms, interpreter included.

What is compared is the processor time of the fastest of a few runs, with compiled modules in place as after an
installation: on a machine that does nothing else it is the time that a person waits. `make ground` prints the time
itself. The help of a command has no goal of its own: its limit keeps imports from creeping in.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.testing import Broker

RUNS = 8
HELP_SECONDS_MAX = 0.150
LIST_SECONDS_MAX = 0.200
COMMAND_HELP_SECONDS_MAX = 0.300


def fastest(cache: Path, *words: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = "import sys; from barnabas.cli.main import main; sys.exit(main())"
    times = []
    for _ in range(RUNS + 1):  # the first one compiles
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def test_the_help_is_there_at_once(tmp_path: Path) -> None:
    assert fastest(tmp_path, "--help") < HELP_SECONDS_MAX


@pytest.mark.parametrize("words", [("topic", "--help"), ("consume", "--help"), ("config", "set", "--help")])
def test_the_help_of_a_command_is_there_soon(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert fastest(tmp_path, *words) < COMMAND_HELP_SECONDS_MAX


def test_topics_are_listed_at_once(tmp_path: Path, shared_broker: Broker) -> None:
    assert fastest(tmp_path, "topic", "list", "-b", shared_broker.bootstrap_servers) < LIST_SECONDS_MAX
