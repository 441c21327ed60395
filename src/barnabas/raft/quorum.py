"""Majorities: how many votes win, and which offset a majority has reached. Pure arithmetic over small collections.

Nothing here knows roles, time or messages; ``machine.py`` and its parts ask. An election is counted per voter id, as
every voter answers at most once with each answer and a later answer never takes an earlier grant back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def majority_of(voter_count: int) -> int:
    return voter_count // 2 + 1


def majority_offset(offsets: Iterable[int]) -> int:
    """The largest offset that a majority has reached, which is the majority-th largest of all."""
    descending = sorted(offsets, reverse=True)
    return descending[majority_of(len(descending)) - 1]


@dataclass(slots=True)
class Election:
    """Who has answered what so far."""

    voter_ids: tuple[int, ...]
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def grant(self, voter_id: int) -> None:
        if voter_id in self.voter_ids:
            self.granted.add(voter_id)

    def reject(self, voter_id: int) -> None:
        if voter_id in self.voter_ids and voter_id not in self.granted:
            self.rejected.add(voter_id)

    @property
    def unanswered(self) -> tuple[int, ...]:
        return tuple(voter for voter in self.voter_ids if voter not in self.granted and voter not in self.rejected)

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= majority_of(len(self.voter_ids))

    @property
    def is_lost(self) -> bool:
        """Even if all who are silent agreed, it would be no majority."""
        return len(self.granted) + len(self.unanswered) < majority_of(len(self.voter_ids))


def describe(offsets: Mapping[int, int]) -> str:
    """One line per voter, longest log first, with a mark below the last that makes the majority.

    For the eyes of whoever reads a transcript or a failed simulation.
    """
    lines = []
    for place, (voter, offset) in enumerate(sorted(offsets.items(), key=lambda item: (-item[1], item[0])), start=1):
        lines.append(f"voter {voter} has {offset}")
        if place == majority_of(len(offsets)):
            lines.append(f"------- committed up to {offset}")
    return "\n".join(lines)
