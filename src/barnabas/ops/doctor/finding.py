"""What a doctor says: one thing that is wrong or worth knowing, what shows it, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

BAD: Final = "bad"  # something does not work now
WARNING: Final = "warning"  # something will not work, or works less well than it seems
NOTE: Final = "note"  # nothing is wrong
SEVERITIES: Final = (BAD, WARNING, NOTE)
NAMES_MAX: Final = 5


class Finding(NamedTuple):
    kind: str  # the same word for the same thing, for programs; each has a test that brings it about on real brokers
    severity: str
    about: str
    what: str
    evidence: str
    mend: str


def some(names: Iterable[object]) -> str:
    """The first few of them."""
    texts = [str(name) for name in names]
    rest = len(texts) - NAMES_MAX
    return ", ".join(texts[:NAMES_MAX]) + (f" and {rest} more" if rest > 0 else "")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
