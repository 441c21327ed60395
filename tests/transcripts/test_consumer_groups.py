"""Plays ``consumer_groups/*.txt``: members of the consumer protocol, and groups that change from one to the other.

They are read and rewritten like those of the classic protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from consumer_group_play import ConsumerPlay
from group_play import compare

from barnabas.coordinator.consumer.settings import ConsumerGroupSettings, MigrationPolicy

TRANSCRIPTS = sorted(Path(__file__).with_name("consumer_groups").glob("*.txt"))


def play_of(values: dict[str, str]) -> ConsumerPlay:
    settings: dict[str, Any] = {
        name: MigrationPolicy(value) if name == "migration_policy" else int(value) for name, value in values.items()
    }
    return ConsumerPlay(ConsumerGroupSettings(**settings))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_groups_do_as_the_transcript_says(path: Path, request: pytest.FixtureRequest) -> None:
    compare(path, play_of, rewrite=request.config.getoption("--rewrite", default=False))
