"""A replica of the simulated quorum: its disk, what a power cut leaves of it, and what is under way.

What happens to replicas is ``raft_simulation``'s and ``raft_chaos``'s.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.model.ids import Uuid
from barnabas.raft import events
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, OffsetAndEpoch
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import NEVER_MS
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet


class Batch(NamedTuple):
    facts: BatchFacts
    values: tuple[object, ...]


@dataclass
class Disk:
    """What a replica keeps. ``batches`` is what it reads back now, ``durable`` what a power cut leaves for certain."""

    directory_id: Uuid
    state: QuorumState = field(default_factory=QuorumState)
    batches: list[Batch] = field(default_factory=list)
    durable: list[Batch] = field(default_factory=list)
    start: OffsetAndEpoch = BOOTSTRAP_SNAPSHOT
    snapshots: dict[OffsetAndEpoch, Snapshot] = field(default_factory=dict)
    prefix: list[tuple[int, object]] = field(default_factory=list)  # the records below the log's start

    def records(self) -> list[tuple[int, object]]:
        records = list(self.prefix)
        for batch in self.batches:
            records += [(batch.facts.epoch, value) for value in batch.values]
        return records

    def record_at(self, offset: int, batches: list[Batch]) -> tuple[int, object] | None:
        if offset < len(self.prefix):
            return self.prefix[offset]
        place = bisect_right(batches, offset, key=lambda batch: batch.facts.base_offset) - 1
        if place < 0 or offset > batches[place].facts.last_offset:
            return None
        batch = batches[place]
        return batch.facts.epoch, batch.values[offset - batch.facts.base_offset]


class Snapshot(NamedTuple):
    records: tuple[tuple[int, object], ...]
    voters: VoterSet
    kraft_version: int


@dataclass
class Node:
    id: int
    disk: Disk
    machine: RaftMachine | None = None  # None while it is down
    incarnation: int = 0
    paused_until_ms: int = 0
    wake_ms: int = NEVER_MS
    is_syncing: bool = False
    sync_wanted: events.Sync | None = None
    download: OffsetAndEpoch | None = None
    requests: dict[int, tuple[tuple[int, int], int, object]] = field(default_factory=dict)
    high_watermark: int = -1
    crash_after_effects: int | None = None

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.disk.directory_id)

    @property
    def voter(self) -> Voter:
        return Voter(self.key, (Endpoint("CONTROLLER", f"host{self.id}", 9093),))
