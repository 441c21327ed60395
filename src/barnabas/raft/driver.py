"""The metadata log as the rest of the server sees it: propose, wait, listen, answer the quorum's requests.

A :class:`RaftDriver` opens the files, builds the machine and gives it an engine; one voter elects itself in ``start``.
Deciding is ``machine.py``'s, performing is ``engine.py``'s, files are ``metadata_log.py``'s and the listener's progress
is ``delivery.py``'s. A disk that fails stops the driver for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_BROKER
from barnabas.observe.log import logger
from barnabas.raft import events
from barnabas.raft.delivery import Delivery, LeaderAndEpoch, RaftListener
from barnabas.raft.describe import QuorumDescription, describe
from barnabas.raft.engine import Engine
from barnabas.raft.events import QuorumState
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch, Verdict
from barnabas.raft.machine import RaftMachine
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.peers import NoPeers, PeerGone, RaftPeers
from barnabas.raft.settings import BATCH_BYTES_MAX, RaftSettings
from barnabas.raft.state_file import read_state
from barnabas.raft.voters import Endpoint, Voter, VoterSet
from barnabas.raft.wire_requests import request_of_wire
from barnabas.raft.wire_responses import response_to_wire
from barnabas.storage.log import PartitionLog
from barnabas.wire.message import Message
from barnabas.wire.messages import response_of
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.records import encode_batch
from barnabas.world.disk import DiskFailure, DiskFull
from barnabas.world.timers import Timers
from barnabas.world.world import World

__all__ = ["LeaderAndEpoch", "NotLeader", "PeerGone", "QuorumDescription", "RaftDriver", "RaftListener", "RaftPeers"]

log = logger("raft")

FETCH_BYTES_MAX: Final = 1 << 20  # of records or of a snapshot in one answer; a larger batch goes alone
SHUTDOWN_FACTOR: Final = 5  # in election timeouts: how long a leader that is stopped waits for its successor
BOOTSTRAP_ID_FIRST: Final = -2  # nodes that are known by address alone count down from here, as Kafka's do


class RaftDriver:
    def __init__(
        self,
        world: World,
        timers: Timers,
        directory: str,
        *,
        local: Voter,
        cluster_id: str,
        settings: RaftSettings | None = None,
        listener: RaftListener | None = None,
        peers: RaftPeers | None = None,
        initial_voters: VoterSet | None = None,
        bootstrap_servers: Sequence[Endpoint] = (),
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """``directory`` is that of ``__cluster_metadata-0``; ``initial_voters`` found a quorum where it is empty."""
        self._world = world
        self._timers = timers
        self._directory = directory
        # What may be set until the start.
        self.local = local
        self.listener = listener
        self.on_voters: Callable[[], None] = lambda: None  # the voters as this replica knows them may have changed
        self.on_opened: Callable[[QuorumState, int], None] = lambda state, end_offset: None  # may refuse the files
        self.found_end = 0  # where the log ended on the disk, before anything was fetched
        self.initial_voters = initial_voters
        self._cluster_id = cluster_id
        self._settings = settings or RaftSettings()
        self._peers: RaftPeers = peers or NoPeers()
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._on_failure = on_failure or (lambda error: None)
        self._engine: Engine | None = None

    async def start(self) -> None:
        """Open or make the files, give the listener the newest snapshot, take part in the quorum."""
        assert self._engine is None
        metadata_log = await MetadataLog.open(
            self._world, self._directory, self._settings, initial_voters=self.initial_voters
        )
        state = read_state(self._world.disk, self._directory) or QuorumState()
        view = metadata_log.view()
        self.found_end = view.end_offset
        try:
            self.on_opened(state, view.end_offset)
        except BaseException:
            await metadata_log.close()
            raise
        bootstrap_ids = tuple(BOOTSTRAP_ID_FIRST - place for place in range(len(self._bootstrap_servers)))
        for node_id, endpoint in zip(bootstrap_ids, self._bootstrap_servers, strict=True):
            self._peers.learn(node_id, (endpoint,))
        machine = RaftMachine(
            local=self.local,
            settings=self._settings,
            log=view,
            state=state,
            seed=int.from_bytes(self._world.entropy.token(8)),
            bootstrap_ids=bootstrap_ids,
        )
        delivery = Delivery(metadata_log, self.listener)
        delivery.start()
        self._engine = Engine(
            self._world,
            self._timers,
            settings=self._settings,
            cluster_id=self._cluster_id,
            peers=self._peers,
            metadata_log=metadata_log,
            machine=machine,
            delivery=delivery,
            on_voters=lambda: self.on_voters(),
            on_failure=self._on_failure,
        )
        self._engine.learn_voters()
        self._engine.step(events.Started())

    async def stop(self, *, hands_over: bool = True) -> None:
        """Hand over if we lead and anybody is to go on, finish what is being written, close the files."""
        if self._engine is not None:
            timeout_ms = SHUTDOWN_FACTOR * self._settings.election_timeout_ms if hands_over else 0
            await self._engine.stop(timeout_ms=timeout_ms)

    @property
    def _running(self) -> Engine:
        assert self._engine is not None, "start it first"
        return self._engine

    @property
    def failure(self) -> Exception | None:
        """Why it goes on no more, if it does not."""
        return self._running.failure

    @property
    def leader(self) -> LeaderAndEpoch:
        """Who leads, as far as is known here; nobody, for one that takes no part yet or any more."""
        if self._engine is None:
            return LeaderAndEpoch()
        machine = self._engine.machine
        return LeaderAndEpoch(machine.acting_leader_id if self._engine.is_running else NO_BROKER, machine.epoch)

    @property
    def is_leader(self) -> bool:
        return self._engine is not None and self._engine.machine.is_leader

    @property
    def high_watermark(self) -> int:
        """The offset after the last record that is known to be committed; -1 before anything is known."""
        return self._running.machine.high_watermark

    @property
    def end_offset(self) -> int:
        return self._running.machine.log.end_offset

    @property
    def voters(self) -> VoterSet:
        """None before the start: others may ask as soon as there is an address."""
        return VoterSet() if self._engine is None else self._engine.machine.log.voters

    @property
    def partition_log(self) -> PartitionLog | None:
        """The files of the metadata log, for who compares them with others'; None before the start."""
        return None if self._engine is None else self._engine.log.partition_log

    def propose(self, records: Sequence[bytes], *, epoch: int) -> int:
        """Append one batch and answer its last offset; it counts when it is committed. NotLeader if we do not lead."""
        if not self._running.is_running:
            raise NotLeader(f"replica {self.local.id} takes no part in the quorum: {self.failure or 'stopped'}")
        now_ms = self._world.clock.wall_ms()
        batch = encode_batch([(now_ms, None, value, ()) for value in records])
        if len(batch) > BATCH_BYTES_MAX:
            raise ApiError(errors.RECORD_LIST_TOO_LARGE, f"{len(batch)} bytes of metadata do not fit into one batch")
        self._running.log.check_room(len(batch))
        last_offset = self.end_offset + len(records) - 1
        self._running.step(events.Proposed(epoch, len(records), batch))
        return last_offset

    async def wait_committed(self, offset: int, *, epoch: int) -> None:
        """Return when the listener has got what we wrote at an offset as the leader of an epoch; NotLeader if we are
        deposed before, perhaps in the very step that wrote it. Another leader's record at that offset is not ours."""
        if self.failure is not None:
            raise self.failure
        if not self.is_leader or self._running.machine.epoch != epoch:
            raise NotLeader(f"replica {self.local.id} does not lead epoch {epoch} any more")
        await self._running.delivery.wait(offset, is_leading=True)

    async def wait_delivered(self, offset: int) -> None:
        """Return when the listener has got the record at an offset, whoever wrote it."""
        if self.failure is not None:
            raise self.failure
        await self._running.delivery.wait(offset, is_leading=False)

    def resign(self, epoch: int) -> None:
        """Let another voter lead, if we lead this epoch."""
        self._running.step(events.ResignAsked(epoch))

    def describe(self) -> QuorumDescription:
        clock = self._world.clock
        return describe(self._running.machine, wall_ms=clock.wall_ms(), monotonic_ms=clock.monotonic_ms())

    async def handle(self, request: Message) -> Message:
        """Answer Vote, Begin- and EndQuorumEpoch, Fetch, FetchSnapshot, Add-, Remove- and UpdateRaftVoter."""
        assert request.api_key is not None
        kind: Any = response_of(request.api_key)
        try:
            value = request_of_wire(request, self._cluster_id)
            if self._engine is None or not self._engine.is_running:
                raise ApiError(errors.BROKER_NOT_AVAILABLE)
        except ApiError as error:
            refusal: Message = kind(error_code=error.error.code)
            return refusal
        size_bytes_max = FETCH_BYTES_MAX
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            size_bytes_max = min(size_bytes_max, max(request.max_bytes, 1))
        return response_to_wire(await self._engine.ask(value, size_bytes_max=size_bytes_max), kind)

    async def create_snapshot(
        self, offset: int, epoch: int, append_time_ms: int, records: Iterable[bytes]
    ) -> OffsetAndEpoch | None:
        """Write the state after all records below ``offset``, the last of them of ``epoch``; None if it is known."""
        snapshot = OffsetAndEpoch(offset, epoch)
        view = self._running.machine.log
        if offset <= view.start_offset or snapshot in self._running.log.snapshots:
            return None
        verdict, _ = view.judge(snapshot)
        if offset > self.high_watermark or verdict is not Verdict.VALID:
            raise ValueError(f"there is no committed record before {snapshot}")
        try:
            await self._running.log.create_snapshot(view, snapshot, append_time_ms, records)
        except DiskFull as error:
            log.warning("no room for a snapshot", error=error)
            return None
        except DiskFailure as error:
            self._running.fail(error)
            raise
        self._running.step(events.SnapshotTaken(snapshot))
        return snapshot
