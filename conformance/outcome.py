"""What became of one test: a verdict, and the reason when it is not a pass.

The suites yield outcomes, the command line prints them, `verdicts.py` keeps them. Nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bench.peers import Peer

from conformance.security import Security

REASON_CHARACTERS_MAX = 160


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    TIMEOUT = "timeout"
    GONE = "gone"  # a whole run of its suite did not have it
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test on one broker, once."""

    test: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Leg:
    """Tests of a suite that share one broker, or a cluster of three: its settings, their names, how they are run on it.

    Clients of a cluster sign in where `security` says how; it is given a directory for its files.
    """

    settings: Mapping[str, str]
    tests: Sequence[str]
    run: Callable[[Peer, Sequence[str]], Iterator[Outcome]]
    is_cluster: bool = False
    security: Callable[[Path], AbstractContextManager[Security]] | None = None


def one_line(text: str) -> str:
    """The first line that says something, short enough for a table, and without the place where this runs."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "").replace(str(Path.home()), "~")
    return line if len(line) <= REASON_CHARACTERS_MAX else line[: REASON_CHARACTERS_MAX - 1] + "…"
