"""The stages beside these tests are not installed anywhere; and what their epochs count from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]


@pytest.fixture(autouse=True)
def _epochs_count_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first member's epoch be 1: so the numbers in these tests are those of the changes they play.

    A broker begins a little higher; `test_the_first_epochs_are_kafkas`, which talks to one, holds it to that.
    """
    from barnabas.coordinator.consumer import group as consumer_group

    monkeypatch.setattr(consumer_group, "FIRST_EPOCH", 0)
