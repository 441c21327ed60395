"""The judges of the simulated quorum: what they remember of a run, and what a sound quorum never does.

The simulation calls them at every append, every commit and every step of a leader, and once when all is well again.
"""

from __future__ import annotations

from bisect import bisect_left

from raft_replica import Batch, Node

from barnabas.raft.machine import RaftMachine
from barnabas.raft.quorum import majority_of
from barnabas.raft.roles import Leader


class Violation(AssertionError):
    """A judge saw something that a sound quorum never does."""


class Judges:
    def __init__(self, nodes: dict[int, Node]) -> None:
        self.nodes = nodes
        self.leaders: dict[int, tuple[int, int]] = {}
        self.known: dict[tuple[int, int], tuple[object, tuple[int, object] | None]] = {}
        self.committed: list[tuple[int, object]] = []
        self.commit_epochs: list[int] = []
        self.leader_high_watermark = -1

    def judge_leader(self, node: Node, machine: RaftMachine) -> None:
        """An epoch has one leader, once, and that leader has all that was committed in earlier epochs."""
        epoch = machine.epoch
        tenure = (node.id, node.incarnation)
        if epoch not in self.leaders:
            self.leaders[epoch] = tenure
            # A vote may arrive so late that a later epoch has already begun; what that committed it need not have.
            count = bisect_left(self.commit_epochs, epoch)
            if node.disk.records()[:count] != self.committed[:count]:
                raise Violation(f"leader {node.id} of epoch {epoch} lacks what was committed")
        elif self.leaders[epoch] != tenure:
            raise Violation(f"epoch {epoch} is led by {tenure} after {self.leaders[epoch]}")

    def judge_append(self, node: Node, batch: Batch) -> None:
        """An epoch and an offset name one record, and what precedes it is the same everywhere: logs match."""
        disk = node.disk
        if disk.batches:
            before = disk.batches[-1]
            previous: tuple[int, object] | None = (before.facts.epoch, before.values[-1])
        else:
            previous = disk.prefix[-1] if disk.prefix else None
        for number, value in enumerate(batch.values):
            place = (batch.facts.epoch, batch.facts.base_offset + number)
            entry = (value, previous)
            if self.known.setdefault(place, entry) != entry:
                raise Violation(f"replica {node.id} has another record at {place}: {entry}, not {self.known[place]}")
            previous = (batch.facts.epoch, value)

    def judge_commit(self, node: Node, high_watermark: int) -> None:
        if high_watermark <= node.high_watermark:
            raise Violation(f"the high watermark of {node.id} falls from {node.high_watermark} to {high_watermark}")
        machine = node.machine
        assert machine is not None
        disk, committed = node.disk, self.committed
        for offset in range(max(node.high_watermark, 0), high_watermark):
            record = disk.record_at(offset, disk.batches)
            if record is None:
                raise Violation(f"replica {node.id} commits {high_watermark} and has no record at {offset}")
            if offset == len(committed):
                committed.append(record)
                self.commit_epochs.append(max([machine.epoch, *self.commit_epochs[-1:]]))
            elif record != committed[offset]:
                raise Violation(
                    f"replica {node.id} commits {record} at {offset}, where {committed[offset]} was committed"
                )
        node.high_watermark = high_watermark
        if isinstance(machine.role, Leader):
            if high_watermark < self.leader_high_watermark and machine.epoch >= max(self.leaders):
                raise Violation(f"the quorum's high watermark falls to {high_watermark}")
            self.leader_high_watermark = max(self.leader_high_watermark, high_watermark)
            self.judge_majority(machine, high_watermark)

    def judge_majority(self, machine: RaftMachine, high_watermark: int) -> None:
        """What is committed is durable on a majority of the voters at that moment."""
        holders = 0
        for voter in machine.log.voters.voters:
            disk = self.nodes[voter.id].disk
            last = disk.record_at(high_watermark - 1, disk.durable)
            # Since logs match, who has the last record has them all.
            holders += disk.directory_id == voter.key.directory_id and last == self.committed[high_watermark - 1]
        if holders < majority_of(len(machine.log.voters)):
            raise Violation(f"{high_watermark} is committed, but durable on {holders} of {machine.log.voters.ids}")

    def judge_liveness(self, leaders: list[Node]) -> None:
        newest = max(leaders, key=lambda node: node.disk.state.epoch, default=None)
        if newest is None:
            raise Violation("nobody leads although all is well")
        assert newest.machine is not None
        if newest.high_watermark < newest.machine.log.end_offset - 20:
            raise Violation("nothing is committed although all is well")
        for node in self.nodes.values():
            if node.high_watermark < newest.high_watermark - 20:
                raise Violation(f"replica {node.id} does not catch up although all is well")
