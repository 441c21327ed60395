"""What goes wrong in the simulated quorum: how bad things are is drawn from the seed, and so is what happens when.

A :class:`Chaos` lays hands on a ``raft_simulation``, which calls it when its time has come.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raft_replica import Disk, Node, Snapshot

from barnabas.raft import events, messages
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from barnabas.raft.roles import Leader
from barnabas.raft.voters import VoterSet

if TYPE_CHECKING:
    from raft_simulation import Simulation

ADMIN = 1000  # the sender of voter changes; it is no replica


@dataclass(frozen=True)
class World:
    """How bad things are, drawn from the seed."""

    voter_count: int
    loss: float
    duplication: float
    slow: float
    partitions: bool
    crashes: bool
    pauses: bool
    snapshots: bool
    reconfigures: bool

    @classmethod
    def of(cls, chance: random.Random) -> World:
        return cls(
            voter_count=chance.choice((3, 3, 5)),
            loss=chance.choice((0.0, 0.02, 0.1, 0.3)),
            duplication=chance.choice((0.0, 0.05, 0.3)),
            slow=chance.choice((0.0, 0.02, 0.1)),
            partitions=chance.random() < 0.6,
            crashes=chance.random() < 0.7,
            pauses=chance.random() < 0.4,
            snapshots=chance.random() < 0.4,
            reconfigures=chance.random() < 0.4,
        )


class Chaos:
    def __init__(self, quorum: Simulation) -> None:
        self.quorum = quorum
        self.chance = quorum.chance
        self.values = 0

    def propose(self) -> None:
        for node in self.quorum.leading():
            machine = node.machine
            if machine is None or node.paused_until_ms > self.quorum.now_ms or self.chance.random() < 0.3:
                continue
            self.values += 1
            try:
                self.quorum.step(node, events.Proposed(machine.epoch, self.chance.randint(1, 3), self.values))
            except NotLeader:
                continue
        self.quorum.after(self.chance.randint(5, 150) if self.quorum.is_chaotic else 200, self.propose)

    def disturb(self) -> None:
        if not self.quorum.is_chaotic:
            return
        chance, world = self.chance, self.quorum.world
        node = self.quorum.nodes[chance.choice(sorted(self.quorum.nodes))]
        kinds = [
            kind
            for kind, is_on in (
                (self.cut_network, world.partitions),
                (self.mend_network, world.partitions),
                (self.plan_crash, world.crashes),
                (self.plan_crash, world.crashes),
                (self.pause, world.pauses),
                (self.take_snapshot, world.snapshots),
                (self.change_voters, world.reconfigures),
                (self.wipe, world.reconfigures),
                (self.resign, True),
            )
            if is_on
        ]
        chance.choice(kinds)(node)
        self.quorum.after(chance.randint(20, 400), self.disturb)

    def cut_network(self, node: Node) -> None:
        others = [number for number in self.quorum.nodes if number != node.id]
        match self.chance.randint(0, 3):
            case 0:  # alone
                self.quorum.blocked |= {(node.id, other) for other in others} | {(other, node.id) for other in others}
            case 1:  # deaf
                self.quorum.blocked |= {(other, node.id) for other in others}
            case 2:  # mute
                self.quorum.blocked |= {(node.id, other) for other in others}
            case _:  # two camps
                camp = set(self.chance.sample(sorted(self.quorum.nodes), len(self.quorum.nodes) // 2))
                self.quorum.blocked |= {
                    (a, b) for a in self.quorum.nodes for b in self.quorum.nodes if (a in camp) != (b in camp)
                }

    def mend_network(self, node: Node) -> None:
        self.quorum.blocked.clear()

    def plan_crash(self, node: Node) -> None:
        if node.machine is None:
            self.quorum.restart(node)
        elif self.chance.random() < 0.5:
            node.crash_after_effects = self.chance.randint(0, 3)
        else:
            self.quorum.crash(node)
            self.quorum.after(self.chance.randint(10, 1000), lambda: self.quorum.restart(node))

    def pause(self, node: Node) -> None:
        node.paused_until_ms = self.quorum.now_ms + self.chance.randint(50, 1500)

    def resign(self, node: Node) -> None:
        if node.machine is not None and self.chance.random() < 0.2:
            self.quorum.step(node, events.ResignAsked(node.machine.epoch))

    def take_snapshot(self, node: Node) -> None:
        machine = node.machine
        if machine is None or machine.installing is not None or node.paused_until_ms > self.quorum.now_ms:
            return
        ends = [b.facts.last_offset + 1 for b in node.disk.batches if b.facts.last_offset < node.high_watermark]
        if not ends:
            return
        offset = self.chance.choice(ends)
        disk = node.disk
        records = tuple(disk.records()[:offset])
        snapshot_id = OffsetAndEpoch(offset, records[-1][0])
        if snapshot_id <= max(disk.snapshots, default=BOOTSTRAP_SNAPSHOT):
            return
        voters = machine.log.voter_sets.at(offset - 1)
        assert voters is not None
        disk.snapshots[snapshot_id] = self.quorum.taken[snapshot_id] = Snapshot(records, voters, 1)
        self.quorum.step(node, events.SnapshotTaken(snapshot_id))
        if self.chance.random() < 0.6 and node.machine is not None and node.high_watermark >= offset:
            disk.prefix = list(records)
            disk.batches = [batch for batch in disk.batches if batch.facts.base_offset >= offset]
            disk.durable = [batch for batch in disk.durable if batch.facts.base_offset >= offset]
            disk.start = snapshot_id
            disk.snapshots = {known: kept for known, kept in disk.snapshots.items() if known >= snapshot_id}
            self.quorum.step(node, events.LogStartMoved(snapshot_id))

    def change_voters(self, node: Node) -> None:
        for leader in self.quorum.leading():
            assert leader.machine is not None
            voters = leader.machine.log.voters
            request: messages.Request
            if voters.is_voter(node.key):
                if len(voters) <= 2:
                    continue
                request = messages.RemoveVoter(node.key)
            else:
                request = messages.AddVoter(node.voter)
            self.quorum.request_ids += 1
            leader.requests[self.quorum.request_ids] = ((ADMIN, 0), 0, request)
            self.quorum.step(leader, events.Asked(self.quorum.request_ids, request))

    def wipe(self, node: Node) -> None:
        """A disk is replaced, by an operator who knows that the replica is no voter anywhere nor about to be one."""
        is_voter = any(
            voters.get(node.id) is not None
            for peer in self.quorum.nodes.values()
            for voters in self.voter_sets_of(peer)
        )
        if not is_voter and not self.is_being_added(node):
            node.machine = None
            node.incarnation += 1
            node.disk = Disk(self.quorum.uuid())
            self.quorum.start(node)

    def is_being_added(self, node: Node) -> bool:
        roles = [leader.machine.role for leader in self.quorum.leading() if leader.machine is not None]
        changes = [role.change for role in roles if isinstance(role, Leader)]
        return any(change is not None and change.added is not None and change.added.id == node.id for change in changes)

    def voter_sets_of(self, node: Node) -> list[VoterSet]:
        sets = [voters for batch in node.disk.batches for _, voters in batch.facts.voters]
        sets += [snapshot.voters for snapshot in node.disk.snapshots.values()]
        return [*sets, self.quorum.first_voters]
