"""Plays ``groups/*.txt``: lines that say what members and tools do, and below each what they hear.

The answers are indented below the line at which they came. A transcript reads as prose, and ``--rewrite`` writes the
answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from group_play import Play, compare

from barnabas.coordinator.groups.settings import GroupSettings

TRANSCRIPTS = sorted(Path(__file__).with_name("groups").glob("*.txt"))


def play_of(values: dict[str, str]) -> Play:
    return Play(GroupSettings(**{name: int(value) for name, value in values.items()}))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_groups_do_as_the_transcript_says(path: Path, request: pytest.FixtureRequest) -> None:
    compare(path, play_of, rewrite=request.config.getoption("--rewrite", default=False))
