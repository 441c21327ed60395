"""Drives the controller: decides on the newest picture, writes to the metadata log, answers when it is committed.

On every node it turns what the log commits into pictures of the cluster and passes them on; on the node that leads
the log it also takes decisions. Those in flight build upon each other's records before they are committed; if the
leadership is lost, all of them fail and their records are forgotten (the next leader may still commit some: a client
that tries again is told what it finds). The decisions themselves are pure and live elsewhere; see ``controller``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, TypeVar, TypeVarTuple

from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.decision import RECORDS_MAX, Decision
from barnabas.metadata.features import lowered_features
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import ImageBuilder, MetadataChanges
from barnabas.metadata.loader import ImageCallback, Loader, SnapshotRules, snapshot_records
from barnabas.metadata.records import AbortTransactionRecord, encode_record
from barnabas.model.errors import KAFKA_STORAGE_ERROR, NOT_CONTROLLER, ApiError
from barnabas.observe.log import logger
from barnabas.raft.delivery import LeaderAndEpoch
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.wire.message import Message
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure
from barnabas.world.tasks import Tasks

log = logger("controller")

SNAPSHOT: Final = "metadata-snapshot"

R = TypeVar("R")
Args = TypeVarTuple("Args")
NO_EPOCH: Final = -1


class MetadataLog(Protocol):
    """What is asked of the Raft driver."""

    @property
    def end_offset(self) -> int: ...

    def propose(self, records: Sequence[bytes], *, epoch: int) -> int: ...

    async def wait_committed(self, offset: int, *, epoch: int) -> None: ...

    async def create_snapshot(
        self, offset: int, epoch: int, append_time_ms: int, records: Iterable[bytes]
    ) -> OffsetAndEpoch | None: ...


class _Proposal(NamedTuple):
    """A batch that was written and not yet committed, and the picture after it."""

    last_offset: int
    image: ClusterImage
    changes: MetadataChanges
    size_bytes: int


class QuorumController:
    def __init__(
        self,
        log: MetadataLog,
        *,
        node_id: int,
        clock: Clock,
        bootstrap: Sequence[Message] | None = None,
        snapshots: SnapshotRules | None = None,
    ) -> None:
        """``bootstrap`` are the first records of a new cluster; None stands for those of a plain one."""
        self._log = log
        self._node_id = node_id
        self._clock = clock
        self._bootstrap = bootstrap_records() if bootstrap is None else list(bootstrap)
        self._loader = Loader(snapshots or SnapshotRules(), now_ms=clock.monotonic_ms())
        self._tasks = Tasks()
        # What this node has written as the leader of the log.
        self._epoch = NO_EPOCH
        self._pending = EMPTY  # the newest picture, with all that is not yet committed
        self._proposals: deque[_Proposal] = deque()
        self._activation: asyncio.Task[None] | None = None
        self._is_active = False
        self._activity_callbacks: list[Callable[[bool], None]] = []
        self._active_waiters: list[asyncio.Future[None]] = []

    @property
    def image(self) -> ClusterImage:
        """What is committed."""
        return self._loader.image

    @property
    def append_time_ms(self) -> int:
        """When the newest committed batch was written, by the clock of the one who led then."""
        return self._loader.append_time_ms

    @property
    def is_active(self) -> bool:
        """Whether this node decides: it leads the log, and the cluster has been founded."""
        return self._is_active

    def on_image(self, callback: ImageCallback) -> Callable[[], None]:
        """Call back with (old picture, new picture, changes) after every commit; the answer takes it off again."""
        return self._loader.on_image(callback)

    def on_activity(self, callback: Callable[[bool], None]) -> None:
        """Call back with True when this node becomes the active controller, with False when it ceases to be."""
        self._activity_callbacks.append(callback)

    # Decisions ----------------------------------------

    async def submit(self, decide: Callable[[ClusterImage, *Args], Decision[R]], *args: *Args) -> R:
        """Decide, write, wait for the commit, answer. What ``decide`` raises is raised, and nothing is written.

        ``decide`` is called with the newest image, which may not be committed yet, and with ``args``.
        NOT_CONTROLLER if this node does not lead the log, or ceases to before the records are committed.
        """
        await self.activated()
        epoch = self._epoch
        decision = decide(self._pending, *args)
        if decision.records:
            self._write(decision.records)
        # Even an answer without records may rest on some that are not committed yet.
        await self._commit_of(self._pending.offset, epoch)
        return decision.response

    async def activated(self) -> None:
        """Wait until this node, which leads the log, is ready to decide; NOT_CONTROLLER if it does not lead."""
        if self._activation is not None:
            await asyncio.shield(self._activation)
        if not self._is_active:
            raise ApiError(NOT_CONTROLLER)

    async def until_active(self) -> None:
        """Wait until this node is the active controller, however long it takes to be elected."""
        while not self._is_active:
            activated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._active_waiters.append(activated)
            await activated

    def _write(self, records: Sequence[Message]) -> None:
        """Propose the records, which become part of the pending picture at once."""
        for start in range(0, len(records), RECORDS_MAX):
            batch = records[start : start + RECORDS_MAX]
            values = [encode_record(record) for record in batch]
            # A decision that contradicts the picture must not get into the log: it is applied first.
            builder = ImageBuilder(self._pending)
            for offset, record in enumerate(batch, self._log.end_offset):
                builder.apply(record, offset)
            image = builder.build(epoch=self._epoch)
            try:
                last_offset = self._log.propose(values, epoch=self._epoch)
            except NotLeader:
                self._deactivate()
                raise ApiError(NOT_CONTROLLER) from None
            assert last_offset == image.offset, "a proposal is written at the end of the log"
            self._pending = image
            self._proposals.append(_Proposal(last_offset, image, builder.changes, sum(map(len, values))))

    async def _commit_of(self, offset: int, epoch: int) -> None:
        if offset > self._loader.committed.offset:
            try:
                await self._log.wait_committed(offset, epoch=epoch)
            except NotLeader:
                raise ApiError(NOT_CONTROLLER) from None
            except DiskFailure as failure:
                raise ApiError(KAFKA_STORAGE_ERROR, f"the metadata log has failed: {failure}") from failure

    # What Raft tells ----------------------------------------

    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        if self._proposals and epoch == self._epoch:
            self._commit_proposals(base_offset + len(records) - 1, append_time_ms)
        else:
            self._loader.load_batch(base_offset, epoch, append_time_ms, records)
        self._snapshot_if_due()

    def _commit_proposals(self, last_offset: int, append_time_ms: int) -> None:
        """What this node wrote itself has been applied before."""
        while self._proposals and self._proposals[0].last_offset <= last_offset:
            proposal = self._proposals.popleft()
            self._loader.accept(proposal.image, proposal.changes, append_time_ms, proposal.size_bytes)
        assert self._loader.committed.offset == last_offset, "a batch is committed as it was proposed"

    def on_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterator[bytes]) -> None:
        assert not self._is_active, "a leader has read its own log"
        self._loader.load_snapshot(snapshot_id, records, now_ms=self._clock.monotonic_ms())

    def on_leader(self, leader: LeaderAndEpoch) -> None:
        """Raft tells us of our own leadership only when all that was written before it has been delivered."""
        if leader.leader_id == self._node_id and leader.epoch == self._epoch:
            return
        self._deactivate()
        if leader.leader_id != self._node_id:
            return
        self._epoch = leader.epoch
        self._pending = self._loader.committed
        records: list[Message] = []
        if self._pending.transaction_base is not None:
            # The controller before this one died within.
            records.append(AbortTransactionRecord(reason="Controller failover"))
        if (self._pending.transaction_base or self._pending).is_empty:
            records += self._bootstrap
        for lowered in lowered_features(self._pending, node_id=self._node_id):
            log.warning("feature is not known and is switched off", feature=lowered.name, level=lowered.feature_level)
            records.append(lowered)
        if records:
            self._activation = self._tasks.start(self._found(records, leader.epoch), "controller-activation")
        else:
            self._activate()

    async def _found(self, records: Sequence[Message], epoch: int) -> None:
        """Nobody else is to see a cluster that has not been founded, so decisions wait for its first records."""
        try:
            if epoch == self._epoch:
                self._write(records)
                await self._commit_of(self._pending.offset, epoch)
        except ApiError:
            return  # another one leads by now, and on_leader says so or has said so
        if epoch == self._epoch:
            self._activate()

    def _activate(self) -> None:
        self._is_active = True
        self._activation = None
        waiters, self._active_waiters = self._active_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._tell_activity()

    def _deactivate(self) -> None:
        self._epoch = NO_EPOCH
        self._pending = EMPTY
        self._proposals.clear()
        self._activation = None
        if self._is_active:
            self._is_active = False
            self._tell_activity()

    def _tell_activity(self) -> None:
        for callback in list(self._activity_callbacks):
            callback(self._is_active)

    # Snapshots ----------------------------------------

    def _snapshot_if_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if not self._tasks.is_running(SNAPSHOT) and self._loader.is_snapshot_due(now_ms=now_ms):
            self._loader.has_snapshot(now_ms=now_ms)
            self._tasks.once(SNAPSHOT, self._write_snapshot)

    async def _write_snapshot(self) -> None:
        image = self._loader.image
        with suppress(DiskFailure):  # the metadata log has reported it and stops this node
            await self._log.create_snapshot(
                image.offset + 1, image.epoch, self._loader.append_time_ms, snapshot_records(image)
            )

    async def stop(self) -> None:
        """Decide nothing more, and let a snapshot that was begun be finished."""
        if self._activation is not None:
            self._activation.cancel()
        self._deactivate()
        await self._tasks.done()
