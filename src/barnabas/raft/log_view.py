"""The facts of the metadata log that the machine decides by, as plain values: ends, epochs, snapshots, voter sets.

The machine updates this view in the same step in which it orders the change, so the view runs ahead of the disk by the
effects that the driver has not performed yet; what is durable is ``synced_offset`` alone. No record is kept here. The
driver builds the first view from the files (``driver.py``), the simulation from its memory.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from barnabas.raft.voters import ReplicaKey, VoterSet

T = TypeVar("T")


class OffsetAndEpoch(NamedTuple):
    """The end of something: the offset after its last record and that record's epoch. Also the name of a snapshot."""

    offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)  # written before the first record; holds the first voters, is never fetched


class BatchFacts(NamedTuple):
    """What the machine must know of a batch that goes into the log."""

    base_offset: int
    last_offset: int
    epoch: int
    voters: tuple[tuple[int, VoterSet], ...] = ()  # with the offset of the control record that names them
    kraft_version: int | None = None


class History(Generic[T]):
    """Values that took effect at offsets; what is in force at an offset is the last that is not above it."""

    __slots__ = ("_offsets", "_values")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._values: list[T] = []

    def add(self, offset: int, value: T) -> None:
        assert not self._offsets or offset >= self._offsets[-1], "the history of a log only grows at its end"
        if self._offsets and self._offsets[-1] == offset:
            self._values[-1] = value
            return
        self._offsets.append(offset)
        self._values.append(value)

    def truncate(self, end_offset: int) -> None:
        while self._offsets and self._offsets[-1] >= end_offset:
            self._offsets.pop()
            self._values.pop()

    def forget_before(self, start_offset: int) -> None:
        """Drop what no offset from ``start_offset`` - 1 on can see any more."""
        keep = max(0, bisect_right(self._offsets, start_offset - 1) - 1)
        del self._offsets[:keep]
        del self._values[:keep]

    def clear(self) -> None:
        self._offsets.clear()
        self._values.clear()

    def at(self, offset: int) -> T | None:
        place = bisect_right(self._offsets, offset)
        return self._values[place - 1] if place else None

    @property
    def last(self) -> T | None:
        return self._values[-1] if self._values else None

    @property
    def last_offset(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    @property
    def before_last(self) -> T | None:
        return self._values[-2] if len(self._values) > 1 else None


class Verdict(Enum):
    """What a fetch position is, seen from this log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


@dataclass(slots=True)
class LogView:
    start_offset: int = 0
    end_offset: int = 0
    synced_offset: int = 0
    generation: int = 0  # how often the log was cut; a sync that was ordered before a cut proves nothing after it
    epochs: list[tuple[int, int]] = field(default_factory=list)  # (epoch, its first offset), ascending
    earliest_snapshot: OffsetAndEpoch | None = None  # the one at the log's start, once that has moved
    latest_snapshot: OffsetAndEpoch | None = None
    voter_sets: History[VoterSet] = field(default_factory=History)
    kraft_versions: History[int] = field(default_factory=History)

    @property
    def voters(self) -> VoterSet:
        """The newest set in the log: it is in force from the moment it is written, committed or not."""
        return self.voter_sets.last or VoterSet()

    def may_lead(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Voters of the newest set may. So may who was removed by it, as long as it may be uncommitted: without the
        votes of those whose logs are shorter than ours nobody is elected, and ours may be the longest (Raft, 4.2.2)."""
        if self.voters.is_voter(key):
            return True
        written, before = self.voter_sets.last_offset, self.voter_sets.before_last
        return written is not None and written >= high_watermark and before is not None and before.is_voter(key)

    @property
    def kraft_version(self) -> int:
        return self.kraft_versions.last or 0

    @property
    def last_epoch(self) -> int:
        """The last record's epoch, which an empty log takes from the snapshot it starts at."""
        if self.epochs:
            return self.epochs[-1][0]
        return self.latest_snapshot.epoch if self.latest_snapshot is not None else 0

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def is_synced(self) -> bool:
        return self.synced_offset == self.end_offset

    def is_up_to_date(self, other: OffsetAndEpoch) -> bool:
        """Whether a candidate whose log ends at ``other`` has at least what this log has: epoch first, then length."""
        return (other.epoch, other.offset) >= (self.last_epoch, self.end_offset)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch of this log that is not above ``epoch``, and where it ends."""
        if epoch >= self.last_epoch:
            return self.end
        place = bisect_right(self.epochs, epoch, key=lambda entry: entry[0])
        if place == 0:
            # Everything older is in the snapshot at the start of the log.
            start = self.earliest_snapshot or OffsetAndEpoch(self.start_offset, 0)
            return start if start.offset == self.start_offset else OffsetAndEpoch(self.start_offset, 0)
        return OffsetAndEpoch(self.epochs[place][1], self.epochs[place - 1][0])

    def judge(self, position: OffsetAndEpoch) -> tuple[Verdict, OffsetAndEpoch]:
        """May a replica whose log ends at ``position`` go on from there? If not: where to cut, or what to download."""
        latest, earliest = self.latest_snapshot, self.earliest_snapshot
        if latest is not None and latest != BOOTSTRAP_SNAPSHOT:
            is_empty = position.offset == 0
            is_behind = self.start_offset > 0 and (
                position.offset < self.start_offset
                or (earliest is not None and position.offset == self.start_offset and position.epoch != earliest.epoch)
                or (earliest is not None and position.epoch < earliest.epoch)
            )
            if is_empty or is_behind:
                return Verdict.SNAPSHOT, latest
        end = self.end_of_epoch(position.epoch)
        if end.epoch != position.epoch or end.offset < position.offset:
            return Verdict.DIVERGING, end
        return Verdict.VALID, position

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Where this log must be cut when the leader says where its own part of a shared epoch ends."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.end_offset)
        end = self.end_of_epoch(diverging.epoch)
        return min(end.offset, diverging.offset) if end.epoch == diverging.epoch else end.offset

    def append(self, batch: BatchFacts) -> None:
        assert batch.base_offset == self.end_offset, f"a gap: {batch.base_offset} after {self.end_offset}"
        assert batch.epoch >= self.last_epoch, f"epoch {batch.epoch} after {self.last_epoch}"
        if not self.epochs or self.epochs[-1][0] != batch.epoch:
            self.epochs.append((batch.epoch, batch.base_offset))
        self.end_offset = batch.last_offset + 1
        for offset, voters in batch.voters:
            self.voter_sets.add(offset, voters)
        if batch.kraft_version is not None:
            self.kraft_versions.add(batch.base_offset, batch.kraft_version)

    def truncate(self, end_offset: int) -> None:
        assert self.start_offset <= end_offset <= self.end_offset
        while self.epochs and self.epochs[-1][1] >= end_offset:
            self.epochs.pop()
        self.end_offset = end_offset
        self.synced_offset = min(self.synced_offset, end_offset)
        self.generation += 1
        self.voter_sets.truncate(end_offset)
        self.kraft_versions.truncate(end_offset)

    def restart_at(self, snapshot: OffsetAndEpoch, voters: VoterSet | None, kraft_version: int) -> None:
        """Forget every record: the log goes on after a snapshot that came from the leader."""
        self.start_offset = self.end_offset = self.synced_offset = snapshot.offset
        self.generation += 1
        self.epochs.clear()
        self.earliest_snapshot = self.latest_snapshot = snapshot
        self.voter_sets.clear()
        self.kraft_versions.clear()
        if voters is not None:
            self.voter_sets.add(snapshot.offset - 1, voters)
        self.kraft_versions.add(snapshot.offset - 1, kraft_version)

    def start_after(self, snapshot: OffsetAndEpoch) -> None:
        """The records below a snapshot of our own are gone."""
        assert self.start_offset <= snapshot.offset <= self.end_offset
        self.start_offset = snapshot.offset
        self.earliest_snapshot = snapshot
        place = bisect_right(self.epochs, snapshot.offset, key=lambda entry: entry[1])
        if place:
            epoch, _ = self.epochs[place - 1]
            self.epochs[:place] = [(epoch, snapshot.offset)]
        if self.start_offset == self.end_offset:
            self.epochs.clear()
        self.voter_sets.forget_before(snapshot.offset)
        self.kraft_versions.forget_before(snapshot.offset)
