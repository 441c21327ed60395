"""The Raft machine in a world that drops, delays, repeats and partitions, where disks lose what was not synced.

One seed is one run: 3 or 5 replicas in memory on a heap of events in virtual time. After every step the judges below
look; at the end the world heals and the quorum must elect a leader and commit. ``BARNABAS_SIM_SEEDS`` says how many
seeds are tried, ``BARNABAS_SIM_SEED`` replays one. The ablations at the end switch one safeguard off each and must be
caught.
"""

from __future__ import annotations

import heapq
import os
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_BROKER, Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import Effect, Event, QuorumState
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, LogView, OffsetAndEpoch, Verdict
from barnabas.raft.machine import RaftMachine
from barnabas.raft.quorum import majority_of
from barnabas.raft.roles import NEVER_MS, Candidate, Leader, Prospective, Unattached
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "200"))
ABLATION_SEEDS_MAX = 300
CHAOS_MS = 10_000
HEALING_MS = 5_000
# Short, so that a run sees many elections.
SETTINGS = RaftSettings(
    election_timeout_ms=150,
    fetch_timeout_ms=300,
    election_backoff_max_ms=150,
    request_timeout_ms=300,
    fetch_wait_ms_max=100,
)
ADMIN = 1000  # the sender of voter changes; it is no replica


class Violation(AssertionError):
    """A judge saw something that a sound quorum never does."""


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


class Simulation:
    def __init__(
        self,
        seed: int,
        machine: type[RaftMachine] = RaftMachine,
        view: type[LogView] = LogView,
        remember: Callable[[QuorumState], QuorumState] = lambda state: state,
        world: World | None = None,
    ) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.world = world or World.of(self.chance)
        self.machine_type = machine
        self.view_type = view
        self.remember = remember
        self.now_ms = 0
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.sequence = 0
        self.steps = 0
        self.request_ids = 0
        self.values = 0
        self.blocked: set[tuple[int, int]] = set()
        self.is_chaotic = True
        node_count = self.world.voter_count + (2 if self.world.reconfigures else 0)
        self.nodes = {number: Node(number, Disk(self.uuid())) for number in range(1, node_count + 1)}
        first = [self.nodes[number].voter for number in range(1, self.world.voter_count + 1)]
        self.first_voters = VoterSet.of(*first)
        # What the judges remember.
        self.leaders: dict[int, tuple[int, int]] = {}
        self.known: dict[tuple[int, int], tuple[object, tuple[int, object] | None]] = {}
        self.committed: list[tuple[int, object]] = []
        self.commit_epochs: list[int] = []
        self.leader_high_watermark = -1

    def uuid(self) -> Uuid:
        return Uuid(self.chance.randbytes(16))

    # Time ----------------------------------------

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        self.sequence += 1
        heapq.heappush(self.queue, (time_ms, self.sequence, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, action)

    def run(self) -> None:
        for node in self.nodes.values():
            self.start(node)
        self.after(50, self.propose)
        self.after(200, self.disturb)
        self.run_until(CHAOS_MS)
        self.heal()
        self.run_until(CHAOS_MS + HEALING_MS)
        self.judge_liveness()

    def run_until(self, time_ms: int) -> None:
        while self.queue and self.queue[0][0] <= time_ms:
            self.now_ms, _, action = heapq.heappop(self.queue)
            action()
        self.now_ms = time_ms

    # Replicas ----------------------------------------

    def start(self, node: Node) -> None:
        disk = node.disk
        view = self.view_type()
        view.voter_sets.add(-1, self.first_voters)
        view.kraft_versions.add(-1, 1)
        view.latest_snapshot = BOOTSTRAP_SNAPSHOT
        if disk.start != BOOTSTRAP_SNAPSHOT:
            snapshot = disk.snapshots[disk.start]
            view.restart_at(disk.start, snapshot.voters, snapshot.kraft_version)
        for batch in disk.batches:
            view.append(batch.facts)
        view.synced_offset = view.end_offset
        view.latest_snapshot = max(disk.snapshots, default=BOOTSTRAP_SNAPSHOT)
        disk.durable = list(disk.batches)
        node.incarnation += 1
        node.paused_until_ms = 0
        node.is_syncing = False
        node.sync_wanted = None
        node.requests.clear()
        node.wake_ms = NEVER_MS
        node.high_watermark = -1
        node.machine = self.machine_type(
            local=node.voter,
            settings=SETTINGS,
            log=view,
            state=self.remember(disk.state),
            seed=self.chance.getrandbits(64),
        )
        self.step(node, events.Started())

    def crash(self, node: Node) -> None:
        """Power off: the disk falls back to what was synced, or keeps some of what came after."""
        disk = node.disk
        shared = 0
        for mine, durable in zip(disk.batches, disk.durable, strict=False):
            if mine != durable:
                break
            shared += 1
        if self.chance.random() < 0.5:
            disk.batches = list(disk.durable)
        else:
            disk.batches = disk.batches[: self.chance.randint(shared, len(disk.batches))]
            if len(disk.batches) < len(disk.durable) and disk.batches == disk.durable[: len(disk.batches)]:
                disk.batches = list(disk.durable)
        node.machine = None
        node.crash_after_effects = None

    def restart(self, node: Node) -> None:
        if node.machine is None:
            self.start(node)

    def step(self, node: Node, event: Event) -> None:
        machine = node.machine
        if machine is None:
            return
        if node.paused_until_ms > self.now_ms:
            incarnation = node.incarnation
            self.at(node.paused_until_ms, lambda: self.step(node, event) if node.incarnation == incarnation else None)
            return
        self.steps += 1
        effects = machine.step(event, self.now_ms)
        for place, effect in enumerate(effects):
            if node.crash_after_effects is not None and place >= node.crash_after_effects:
                self.crash(node)
                self.after(self.chance.randint(10, 1000), lambda: self.restart(node))
                return
            self.perform(node, effect)
        if isinstance(machine.role, Leader):
            self.judge_leader(node, machine)
        wake_ms = machine.next_deadline_ms
        assert wake_ms > self.now_ms
        if wake_ms != node.wake_ms and wake_ms < NEVER_MS:
            node.wake_ms = wake_ms
            self.at(wake_ms, lambda: self.wake(node, wake_ms))

    def wake(self, node: Node, wake_ms: int) -> None:
        if node.wake_ms == wake_ms:
            node.wake_ms = NEVER_MS
            self.step(node, events.TimerFired())

    def perform(self, node: Node, effect: Effect) -> None:
        disk = node.disk
        match effect:
            case events.Persist(state):
                disk.state = state
            case events.Append(base_offset, epoch, record_count, payload):
                voters = getattr(payload, "voter_set", None)
                values = tuple((payload, number) for number in range(record_count))
                last_offset = base_offset + record_count - 1
                sets = ((last_offset, voters),) if voters is not None else ()
                kraft_version = getattr(payload, "kraft_version", None)
                self.append(node, Batch(BatchFacts(base_offset, last_offset, epoch, sets, kraft_version), values))
            case events.AppendFetched(records=records):
                assert isinstance(records, tuple)
                for batch in records:
                    self.append(node, batch)
            case events.Truncate(end_offset):
                while disk.batches and disk.batches[-1].facts.last_offset >= end_offset:
                    assert disk.batches[-1].facts.base_offset >= end_offset, "a cut goes between batches"
                    disk.batches.pop()
            case events.Sync():
                node.sync_wanted = effect
                self.sync(node)
            case events.Send(peer_id, number, request):
                source = (node.id, node.incarnation)
                self.transmit(node.id, peer_id, lambda: self.deliver(source, peer_id, number, request))
            case events.Reply(request_id, response):
                self.reply(node, request_id, response)
            case events.Committed(high_watermark):
                self.judge_commit(node, high_watermark)
            case events.LeaderChanged() | events.Learn() | events.AppendSnapshot():
                pass
            case events.BeginSnapshot(snapshot):
                node.download = snapshot
            case events.InstallSnapshot(snapshot):
                self.install(node, snapshot)
            case events.Alarm(text):
                raise Violation(text)

    def append(self, node: Node, batch: Batch) -> None:
        self.judge_append(node, batch)
        node.disk.batches.append(batch)

    def sync(self, node: Node) -> None:
        wanted = node.sync_wanted
        if node.is_syncing or wanted is None:
            return
        node.is_syncing = True
        node.sync_wanted = None
        written = list(node.disk.batches)
        incarnation = node.incarnation

        def synced() -> None:
            if node.incarnation != incarnation or node.machine is None:
                return
            node.is_syncing = False
            start_offset = node.disk.start.offset  # it may have moved meanwhile
            node.disk.durable = [batch for batch in written if batch.facts.base_offset >= start_offset]
            self.step(node, events.LogSynced(wanted.end_offset, wanted.generation))
            self.sync(node)

        self.after(self.chance.choice((0, 1, 1, 5, 40)), synced)

    def install(self, node: Node, snapshot_id: OffsetAndEpoch) -> None:
        holder = next(peer for peer in self.nodes.values() if snapshot_id in peer.disk.snapshots)
        snapshot = holder.disk.snapshots[snapshot_id]
        incarnation = node.incarnation

        def installed() -> None:
            if node.incarnation != incarnation or node.machine is None:
                return
            disk = node.disk
            disk.snapshots = {snapshot_id: snapshot}
            disk.prefix = list(snapshot.records)
            disk.batches, disk.durable = [], []
            disk.start = snapshot_id
            self.step(node, events.SnapshotInstalled(snapshot_id, snapshot.voters, snapshot.kraft_version))

        self.after(self.chance.randint(1, 200), installed)

    # The network ----------------------------------------

    def transmit(self, source: int, target: int, delivery: Callable[[], None]) -> None:
        chance = self.chance
        copies = 1
        if self.is_chaotic:
            if chance.random() < self.world.loss:
                return
            if chance.random() < self.world.duplication:
                copies = 2
        for _ in range(copies):
            delay_ms = chance.randint(1, 10)
            if self.is_chaotic and chance.random() < self.world.slow:
                delay_ms = chance.randint(20, 1500)
            self.after(delay_ms, lambda: delivery() if (source, target) not in self.blocked else None)

    def deliver(self, source: tuple[int, int], target: int, number: int, request: messages.Request) -> None:
        node = self.nodes[target]
        if node.machine is None:
            return
        if isinstance(request, messages.AskSupport):
            response = messages.SupportResponse(kraft_version_max=1)
            self.answer(target, source, number, response)
            return
        self.request_ids += 1
        node.requests[self.request_ids] = (source, number, request)
        self.step(node, events.Asked(self.request_ids, request))

    def reply(self, node: Node, request_id: int, response: messages.Response) -> None:
        source, number, request = node.requests.pop(request_id)
        if source[0] == ADMIN:
            return
        if isinstance(response, messages.FetchResponse) and response.read_offset >= 0:
            position = next(
                (p for p, batch in enumerate(node.disk.batches) if batch.facts.base_offset >= response.read_offset),
                None,
            )
            assert position is not None
            batches = tuple(node.disk.batches[position : position + self.chance.choice((1, 3, 100))])
            assert batches[0].facts.base_offset == response.read_offset
            response = replace(response, records=batches, batches=tuple(batch.facts for batch in batches))
        if isinstance(response, messages.FetchSnapshotResponse) and response.error is errors.NONE:
            assert isinstance(request, messages.FetchSnapshot)
            if request.snapshot in node.disk.snapshots:
                response = replace(response, size_bytes=3, data=b"x", data_bytes=1)
            else:
                response = replace(response, error=errors.SNAPSHOT_NOT_FOUND)
        self.answer(node.id, source, number, response)

    def answer(self, source: int, target: tuple[int, int], number: int, response: messages.Response) -> None:
        """An answer reaches only the life of a replica that asked: a connection does not survive its process."""
        node_id, incarnation = target
        node = self.nodes[node_id]

        def arrive() -> None:
            if node.incarnation == incarnation:
                self.step(node, events.Answered(source, number, response))

        self.transmit(source, node_id, arrive)

    # What happens ----------------------------------------

    def leading(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.machine is not None and node.machine.is_leader]

    def propose(self) -> None:
        for node in self.leading():
            machine = node.machine
            if machine is None or node.paused_until_ms > self.now_ms or self.chance.random() < 0.3:
                continue
            self.values += 1
            try:
                self.step(node, events.Proposed(machine.epoch, self.chance.randint(1, 3), self.values))
            except NotLeader:
                continue
        self.after(self.chance.randint(5, 150) if self.is_chaotic else 200, self.propose)

    def disturb(self) -> None:
        if not self.is_chaotic:
            return
        chance, world = self.chance, self.world
        node = self.nodes[chance.choice(sorted(self.nodes))]
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
        self.after(chance.randint(20, 400), self.disturb)

    def cut_network(self, node: Node) -> None:
        others = [number for number in self.nodes if number != node.id]
        match self.chance.randint(0, 3):
            case 0:  # alone
                self.blocked |= {(node.id, other) for other in others} | {(other, node.id) for other in others}
            case 1:  # deaf
                self.blocked |= {(other, node.id) for other in others}
            case 2:  # mute
                self.blocked |= {(node.id, other) for other in others}
            case _:  # two camps
                camp = set(self.chance.sample(sorted(self.nodes), len(self.nodes) // 2))
                self.blocked |= {(a, b) for a in self.nodes for b in self.nodes if (a in camp) != (b in camp)}

    def mend_network(self, node: Node) -> None:
        self.blocked.clear()

    def plan_crash(self, node: Node) -> None:
        if node.machine is None:
            self.restart(node)
        elif self.chance.random() < 0.5:
            node.crash_after_effects = self.chance.randint(0, 3)
        else:
            self.crash(node)
            self.after(self.chance.randint(10, 1000), lambda: self.restart(node))

    def pause(self, node: Node) -> None:
        node.paused_until_ms = self.now_ms + self.chance.randint(50, 1500)

    def resign(self, node: Node) -> None:
        if node.machine is not None and self.chance.random() < 0.2:
            self.step(node, events.ResignAsked(node.machine.epoch))

    def take_snapshot(self, node: Node) -> None:
        machine = node.machine
        if machine is None or machine.installing is not None or node.paused_until_ms > self.now_ms:
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
        disk.snapshots[snapshot_id] = Snapshot(records, voters, 1)
        self.step(node, events.SnapshotTaken(snapshot_id))
        if self.chance.random() < 0.6 and node.machine is not None and node.high_watermark >= offset:
            disk.prefix = list(records)
            disk.batches = [batch for batch in disk.batches if batch.facts.base_offset >= offset]
            disk.durable = [batch for batch in disk.durable if batch.facts.base_offset >= offset]
            disk.start = snapshot_id
            disk.snapshots = {known: kept for known, kept in disk.snapshots.items() if known >= snapshot_id}
            self.step(node, events.LogStartMoved(snapshot_id))

    def change_voters(self, node: Node) -> None:
        for leader in self.leading():
            assert leader.machine is not None
            voters = leader.machine.log.voters
            request: messages.Request
            if voters.is_voter(node.key):
                if len(voters) <= 2:
                    continue
                request = messages.RemoveVoter(node.key)
            else:
                request = messages.AddVoter(node.voter)
            self.request_ids += 1
            leader.requests[self.request_ids] = ((ADMIN, 0), 0, request)
            self.step(leader, events.Asked(self.request_ids, request))

    def wipe(self, node: Node) -> None:
        """A disk is replaced, by an operator who knows that the replica is no voter anywhere any more."""
        is_voter = any(
            voters.get(node.id) is not None for peer in self.nodes.values() for voters in self.voter_sets_of(peer)
        )
        if not is_voter:
            node.machine = None
            node.incarnation += 1
            node.disk = Disk(self.uuid())
            self.start(node)

    def voter_sets_of(self, node: Node) -> list[VoterSet]:
        sets = [voters for batch in node.disk.batches for _, voters in batch.facts.voters]
        sets += [snapshot.voters for snapshot in node.disk.snapshots.values()]
        return [*sets, self.first_voters]

    def heal(self) -> None:
        self.is_chaotic = False
        self.blocked.clear()
        for node in self.nodes.values():
            node.paused_until_ms = 0
            node.crash_after_effects = None
            if node.machine is None:
                self.start(node)

    # The judges ----------------------------------------

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

    def judge_liveness(self) -> None:
        leaders = self.leading()
        newest = max(leaders, key=lambda node: node.disk.state.epoch, default=None)
        if newest is None:
            raise Violation("nobody leads although all is well")
        assert newest.machine is not None
        if newest.high_watermark < newest.machine.log.end_offset - 20:
            raise Violation("nothing is committed although all is well")
        for voter in newest.machine.log.voters.voters:
            if self.nodes[voter.id].high_watermark < newest.high_watermark - 20:
                raise Violation(f"voter {voter.id} does not catch up although all is well")


def run(seed: int) -> None:
    simulation = Simulation(seed)
    try:
        simulation.run()
    except AssertionError as error:
        raise AssertionError(
            f"seed {seed} at {simulation.now_ms} ms, step {simulation.steps}: {error!r}\n{simulation.world}\n"
            f"replay: BARNABAS_SIM_SEED={seed} pytest tests/sim/test_raft_machine.py -k every_seed"
        ) from error


def test_the_quorum_holds_in_every_seed() -> None:
    only = os.environ.get("BARNABAS_SIM_SEED")
    for seed in [int(only)] if only else range(SEEDS):
        run(seed)


def test_a_seed_replays_step_by_step() -> None:
    first, second = Simulation(7), Simulation(7)
    first.run()
    second.run()
    assert (first.steps, first.committed, first.leaders) == (second.steps, second.committed, second.leaders)
    assert len(first.committed) > 20


# Ablations: with one safeguard off, some seed must end badly, or the judges are blind ----------


class VotesTwice(RaftMachine):
    def _may_grant(self, request: messages.Vote) -> bool:
        if not request.is_pre_vote and isinstance(self.role, Unattached | Prospective) and not self.has_leader:
            return self.log.is_up_to_date(request.log_end)
        return super()._may_grant(request)


class CommitsEarlierEpochs(RaftMachine):
    def _may_commit(self, role: Leader, offset: int) -> bool:
        return offset > 0


class CountsItselfUnsynced(RaftMachine):
    def _acknowledged_offset(self, role: Leader, key: ReplicaKey) -> int:
        return self.log.end_offset if key.id == self.local.id else super()._acknowledged_offset(role, key)


class HearsEveryAnswer(RaftMachine):
    def _is_expected(self, peer_id: int, number: int) -> bool:
        return True


class WinsWithoutMajority(RaftMachine):
    def _poll_candidate(self, role: Candidate) -> None:
        if len(role.election.granted) * 2 >= len(role.election.voter_ids) - 1:
            self._become_leader(role)
        else:
            super()._poll_candidate(role)


class HeedsNoEpoch(RaftMachine):
    """A response of an earlier epoch is taken for one of this epoch."""

    def _observe_response(self, response: messages.LeaderFacts) -> bool | None:
        if response.epoch < self.epoch and response.error is errors.NONE:
            return None
        return super()._observe_response(response)

    def _is_expected(self, peer_id: int, number: int) -> bool:
        return True


class ChangesManyVotersAtOnce(RaftMachine):
    def _change_error(self, role: Leader) -> tuple[WireError, str] | None:
        if role.change is not None and role.change.added is None:
            role.change = None
        return None if role.change is None else super()._change_error(role)


class FetchesUnsynced(LogView):
    @property
    def is_synced(self) -> bool:
        return True


class VotesForShortLogs(LogView):
    def is_up_to_date(self, other: OffsetAndEpoch) -> bool:
        return True


class ComparesOnlyLengths(LogView):
    def judge(self, position: OffsetAndEpoch) -> tuple[Verdict, OffsetAndEpoch]:
        verdict, end = super().judge(position)
        if verdict is Verdict.DIVERGING and position.offset <= self.end_offset and position.offset >= self.start_offset:
            return Verdict.VALID, position
        return verdict, end


def forgets_everything(state: QuorumState) -> QuorumState:
    return QuorumState()


def forgets_that_it_led(state: QuorumState) -> QuorumState:
    return state._replace(leader_id=NO_BROKER)


MACHINES = (
    VotesTwice,
    CommitsEarlierEpochs,
    CountsItselfUnsynced,
    HearsEveryAnswer,
    WinsWithoutMajority,
    HeedsNoEpoch,
    ChangesManyVotersAtOnce,
)


def first_bad_seed(simulate: Callable[[int], Simulation]) -> int | None:
    for seed in range(ABLATION_SEEDS_MAX):
        try:
            simulate(seed).run()
        except AssertionError:
            return seed
    return None


@pytest.mark.parametrize("machine", MACHINES)
def test_a_safeguard_of_the_machine_is_missed(machine: type[RaftMachine]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, machine)) is not None


@pytest.mark.parametrize("view", [FetchesUnsynced, VotesForShortLogs, ComparesOnlyLengths])
def test_a_safeguard_of_the_log_is_missed(view: type[LogView]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, view=view)) is not None


@pytest.mark.parametrize("remember", [forgets_everything, forgets_that_it_led])
def test_a_state_that_does_not_survive_is_missed(remember: Callable[[QuorumState], QuorumState]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, remember=remember)) is not None
