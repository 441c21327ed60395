"""The leader epochs of what was read from a partition: in which one the record before an offset was written (KIP-320).

Pure. The cursor keeps a trail for its partition; positions are committed and validated with what it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.model.ids import NO_LEADER_EPOCH

STARTS_MAX: Final = 64  # further back nobody rewinds


class EpochStart(NamedTuple):
    first_offset: int
    epoch: int


class EpochTrail:
    __slots__ = ("_starts",)

    def __init__(self) -> None:
        self._starts: list[EpochStart] = []

    def begin(self, offset: int, epoch: int) -> None:
        """Reading goes on at an offset; the record before it is of this epoch."""
        self._starts = [EpochStart(offset - 1, epoch)]

    def extend(self, starts: Iterable[EpochStart]) -> None:
        """What was read next, in the order of offsets."""
        for start in starts:
            if not self._starts or self._starts[-1].epoch != start.epoch:
                self._starts.append(start)
        del self._starts[:-STARTS_MAX]

    def before(self, offset: int) -> int:
        for start in reversed(self._starts):
            if start.first_offset < offset:
                return start.epoch
        return NO_LEADER_EPOCH

    def cap(self, epoch: int) -> None:
        """The leader knows of no later epoch than this one among those that were read."""
        self._starts = [EpochStart(start.first_offset, min(start.epoch, epoch)) for start in self._starts]
