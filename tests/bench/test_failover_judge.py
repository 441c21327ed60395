"""The judge of the failover runs sees what was lost, doubled, swapped, or is there though nobody was told."""

from __future__ import annotations

import pytest
from bench.failover.judge import compare
from bench.failover.load import ProofFailed

FOUND = [(0, b"0"), (1, b"1"), (2, b"2")]


def test_what_is_there_as_it_was_acknowledged_passes() -> None:
    compare("t-0", dict(FOUND), FOUND)
    compare("t-0", {0: b"0", 2: b"2"}, FOUND, {b"1"})


@pytest.mark.parametrize(
    ("acknowledged", "found", "placeless"),
    [
        pytest.param({0: b"0", 1: b"1", 2: b"2", 3: b"3"}, FOUND, set(), id="lost"),
        pytest.param({0: b"0", 1: b"1", 2: b"2"}, FOUND, {b"3"}, id="lost, its offset never said"),
        pytest.param({0: b"0", 1: b"1"}, FOUND, set(), id="never acknowledged"),
        pytest.param({0: b"0", 1: b"1", 2: b"1"}, [(0, b"0"), (1, b"1"), (2, b"1")], set(), id="doubled"),
        pytest.param({0: b"1", 1: b"0"}, [(0, b"1"), (1, b"0")], set(), id="swapped"),
        pytest.param({0: b"0", 1: b"2", 2: b"1"}, FOUND, set(), id="elsewhere"),
    ],
)
def test_what_is_not_as_it_was_acknowledged_fails(
    acknowledged: dict[int, bytes], found: list[tuple[int, bytes]], placeless: set[bytes]
) -> None:
    with pytest.raises(ProofFailed):
        compare("t-0", acknowledged, found, placeless)
