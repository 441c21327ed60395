"""Three or five replicas in one process, in virtual time, on a heap of events; one seed is one run.

The simulation performs what the machines decide: disks, syncs, the network. What goes wrong is ``raft_chaos``'s, what
must hold all the same ``raft_judges``'s.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import replace

from raft_chaos import ADMIN, Chaos, World
from raft_judges import Judges, Violation
from raft_replica import Batch, Disk, Node, Snapshot

from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import Effect, Event, QuorumState
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, LogView, OffsetAndEpoch
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import NEVER_MS, Leader
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import VoterSet

CHAOS_MS = 10_000
HEALING_MS = 5_000
# Short, so that a run sees many elections.
SETTINGS = RaftSettings(
    auto_join_enable=False,
    election_timeout_ms=150,
    fetch_timeout_ms=300,
    election_backoff_max_ms=150,
    request_timeout_ms=300,
    fetch_wait_ms_max=100,
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
        self.blocked: set[tuple[int, int]] = set()
        self.taken: dict[OffsetAndEpoch, Snapshot] = {}  # every snapshot there ever was: one name is one content
        self.is_chaotic = True
        node_count = self.world.voter_count + (2 if self.world.reconfigures else 0)
        self.nodes = {number: Node(number, Disk(self.uuid())) for number in range(1, node_count + 1)}
        first = [self.nodes[number].voter for number in range(1, self.world.voter_count + 1)]
        self.first_voters = VoterSet.of(*first)
        self.judges = Judges(self.nodes)
        self.chaos = Chaos(self)

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
        self.after(50, self.chaos.propose)
        self.after(200, self.chaos.disturb)
        self.run_until(CHAOS_MS)
        self.heal()
        self.run_until(CHAOS_MS + HEALING_MS)
        self.judges.judge_liveness(self.leading())

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
            self.judges.judge_leader(node, machine)
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
                self.judges.judge_commit(node, high_watermark)
            case events.LeaderChanged() | events.Learn() | events.AppendSnapshot():
                pass
            case events.BeginSnapshot(snapshot):
                node.download = snapshot
            case events.InstallSnapshot(snapshot):
                self.install(node, snapshot)
            case events.Alarm(text):
                raise Violation(text)

    def append(self, node: Node, batch: Batch) -> None:
        self.judges.judge_append(node, batch)
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
        snapshot = self.taken[snapshot_id]  # whoever sent the last of it may have a newer one by now
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

    # What befalls all ----------------------------------------

    def leading(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.machine is not None and node.machine.is_leader]

    def heal(self) -> None:
        self.is_chaotic = False
        self.blocked.clear()
        for node in self.nodes.values():
            node.paused_until_ms = 0
            node.crash_after_effects = None
            if node.machine is None:
                self.start(node)
