"""Majorities."""

from __future__ import annotations

import pytest

from barnabas.raft.quorum import Election, describe, majority_offset


@pytest.mark.parametrize(
    ("offsets", "expected"), [([7], 7), ([7, 3], 3), ([7, 3, 5], 5), ([9, 9, 1, 1], 1), ([9, 8, 7, 6, 5], 7)]
)
def test_a_majority_has_reached_the_middle(offsets: list[int], expected: int) -> None:
    assert majority_offset(offsets) == expected


def test_an_election_is_open_until_a_majority_agrees_or_cannot() -> None:
    election = Election((1, 2, 3, 4))
    election.grant(1)
    election.reject(2)
    assert (election.is_won, election.is_lost, election.unanswered) == (False, False, (3, 4))
    election.reject(3)
    assert election.is_lost
    election = Election((1, 2, 3))
    election.grant(1)
    election.grant(9)
    assert not election.is_won
    election.grant(3)
    election.reject(3)
    assert election.is_won


def test_the_line_is_drawn_below_the_majority() -> None:
    assert describe({1: 9, 2: 4, 3: 7}) == ("voter 1 has 9\nvoter 3 has 7\n------- committed up to 7\nvoter 2 has 4")
