"""Performs what the Raft machine orders: on the metadata log, the listener, the peers and the timers.

Every event goes into the machine at once; what the machine orders is performed in order, and waits as a whole while the
quorum's state is written, so nothing that rests on a vote or an epoch is seen before they are durable. Proposals that
arrive during an fsync share the next one. What others may ask of the quorum is in ``driver.py``, which builds on this.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType
from typing import Final, assert_never

from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, Malformed
from barnabas.observe.log import logger
from barnabas.raft import events, messages
from barnabas.raft.delivery import Delivery, LeaderAndEpoch
from barnabas.raft.events import Effect, Event, ImmediateEffect, QuorumState
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.machine import RaftMachine
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.peers import RaftPeers
from barnabas.raft.roles import NEVER_MS
from barnabas.raft.settings import RaftSettings
from barnabas.raft.state_file import write_state
from barnabas.raft.wire_requests import request_to_wire
from barnabas.raft.wire_responses import response_of_wire
from barnabas.transport.channel import Refused
from barnabas.world.disk import DiskFailure, FileClosed
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers
from barnabas.world.world import World

CLEANING_PERIOD_MS: Final = 60_000
WRITES: Final = "raft-write"  # tasks of this name are waited for, not cancelled

log = logger("raft")


class Guard:
    """Whatever goes wrong inside is ours: a replica that is half-way through a step must not take another."""

    def __init__(self, fail: Callable[[Exception], None]) -> None:
        self._fail = fail

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Records that were refused have changed nothing.
        if isinstance(error, Exception) and not isinstance(error, NotLeader):
            self._fail(error)


class Engine:
    """One life of a replica, from the start of its machine to the stop or the failure of its disk."""

    def __init__(
        self,
        world: World,
        timers: Timers,
        *,
        settings: RaftSettings,
        cluster_id: str,
        peers: RaftPeers,
        metadata_log: MetadataLog,
        machine: RaftMachine,
        delivery: Delivery,
        on_voters: Callable[[], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._world = world
        self._timers = timers
        self._settings = settings
        self._cluster_id = cluster_id
        self._peers = peers
        self._on_voters = on_voters
        self._on_failure = on_failure
        self.log = metadata_log
        self.machine = machine
        self.delivery = delivery
        delivery.on_turn_due = lambda: self._spawn("raft-delivery", self._deliver)
        self.failure: Exception | None = None
        self.is_running = True
        self._effects: deque[Effect] = deque()
        self._is_performing = False
        self._asked: dict[int, tuple[asyncio.Future[messages.Response], int]] = {}
        self._asked_count = 0
        self._alarm_said = ""
        self._sync_wanted: events.Sync | None = None
        self._is_syncing = False
        self._tasks = Tasks(on_failure=self.fail)
        self._writes = Tasks(on_failure=self.fail)  # a stop waits for these, and cancels the others
        self._timer: Timer | None = None
        self._cleaning: Timer | None = timers.after(CLEANING_PERIOD_MS, self._clean_later)
        self._stoppable = asyncio.Event()
        self._guard = Guard(self.fail)

    async def ask(self, request: messages.Request, *, size_bytes_max: int) -> messages.Response:
        """The machine's answer to a request, with at most so many bytes of records in it."""
        self._asked_count += 1
        request_id = self._asked_count
        future: asyncio.Future[messages.Response] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = (future, size_bytes_max)
        try:
            self.step(events.Asked(request_id, request))
            return await future
        finally:
            self._asked.pop(request_id, None)

    async def stop(self, *, timeout_ms: int) -> None:
        """Hand over if we lead, finish what is being written, close the files."""
        if self.is_running:
            self._stoppable.clear()
            self.step(events.ShutdownAsked())
            timer = self._timers.after(timeout_ms, self._stoppable.set)
            await self._stoppable.wait()
            timer.cancel()
        self.halt()
        await self._tasks.stop()
        await self._writes.done()
        try:
            await self.log.close()
        except DiskFailure as error:
            log.error("close_failed", error=error)

    # Events and effects ----------------------------------------

    def step(self, event: Event) -> None:
        if not self.is_running:
            return
        with self._guard:
            self._effects += self.machine.step(event, self._world.clock.monotonic_ms())
            self._perform()
            if self.machine.may_stop:
                self._stoppable.set()
            self._arm()

    def _perform(self) -> None:
        """Perform what is ordered, up to a state that has to be written first; then go on after it."""
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while self._effects:
                effect = self._effects.popleft()
                if isinstance(effect, events.Persist):
                    self._spawn(f"{WRITES}-state", self._persist, effect.state)
                    return
                self._perform_one(effect)
        except DiskFailure as error:
            self.fail(error)
        self._is_performing = False

    def _perform_one(self, effect: ImmediateEffect) -> None:
        match effect:
            case events.Append():
                self.log.append(effect)
            case events.AppendFetched():
                self._append_fetched(effect)
            case events.Truncate():
                self.log.truncate(effect.end_offset)
            case events.Sync():
                self._sync(effect)
            case events.Send():
                self._spawn(f"raft-ask:{effect.peer_id}", self._send_and_wait, effect)
            case events.Reply():
                self._reply(effect)
            case events.Committed():
                self._committed(effect)
            case events.LeaderChanged():
                self._leader_changed(effect)
            case events.Learn():
                self._peers.learn(effect.node_id, effect.endpoints)
            case events.BeginSnapshot():
                self.log.begin_download(effect.snapshot)
            case events.AppendSnapshot():
                self.log.append_download(effect.data)
            case events.InstallSnapshot():
                self._spawn(f"{WRITES}-snapshot", self._install, effect.snapshot)
            case events.Alarm():
                self._alarm(effect)
            case _:
                assert_never(effect)

    async def _persist(self, state: QuorumState) -> None:
        view = self.machine.log
        await write_state(
            self._world.disk, self.log.directory, state, kraft_version=view.kraft_version, voter_ids=view.voters.ids
        )
        self._is_performing = False
        self._perform()

    def _append_fetched(self, effect: events.AppendFetched) -> None:
        self.log.append_fetched(effect.records, end_offset=effect.end_offset)
        self.learn_voters()

    def _sync(self, effect: events.Sync) -> None:
        self._sync_wanted = effect
        if not self._is_syncing:
            self._is_syncing = True
            self._spawn(f"{WRITES}-log", self._sync_all)

    async def _sync_all(self) -> None:
        while self._sync_wanted is not None:
            # What is appended from here on waits for the next turn of this loop.
            wanted, self._sync_wanted = self._sync_wanted, None
            await self.log.sync()
            self.step(events.LogSynced(wanted.end_offset, wanted.generation))
        self._is_syncing = False

    async def _send_and_wait(self, effect: events.Send) -> None:
        response, is_refused = None, False
        try:
            # The machine gives up by itself at the same time; this ends the task and the connection.
            answer = await self._peers.send(
                effect.peer_id,
                request_to_wire(effect.request, self._cluster_id),
                timeout_ms=self._settings.request_timeout_ms,
            )
            response = response_of_wire(answer, self._listener_name)
        except (BarnabasError, OSError, TimeoutError) as error:
            log.debug("peer_failed", peer=effect.peer_id, request=type(effect.request).__name__, error=error)
            is_refused = isinstance(error, Refused)
        self.step(events.Answered(effect.peer_id, effect.number, response, is_refused))

    @property
    def _listener_name(self) -> str:
        return self.machine.local.endpoints[0].listener if self.machine.local.endpoints else ""

    def _reply(self, effect: events.Reply) -> None:
        future, size_bytes_max = self._asked.get(effect.request_id, (None, 0))
        if future is None or future.done():
            return  # whoever asked has gone
        future.set_result(self._filled(effect.response, size_bytes_max))

    def _filled(self, response: messages.Response, size_bytes_max: int) -> messages.Response:
        """With the records or the piece of a snapshot that it is to bring, if they are still there."""
        try:
            if isinstance(response, messages.FetchResponse) and response.read_offset >= 0:
                end_offset = self.log.end_offset
                records = self.log.read(response.read_offset, end_offset=end_offset, size_bytes_max=size_bytes_max)
                return replace(response, records=records)
            if isinstance(response, messages.FetchSnapshotResponse) and response.error is errors.NONE:
                assert response.snapshot is not None
                data, whole = self.log.read_snapshot(response.snapshot, response.position, size_bytes_max)
                return replace(response, data=data, size_bytes=whole)
        except ApiError as error:
            return replace(response, error=error.error)
        return response

    def _committed(self, effect: events.Committed) -> None:
        self.log.committed(effect.high_watermark)
        self.delivery.advance(effect.high_watermark)

    async def _deliver(self) -> None:
        self.delivery.go_on()

    def _leader_changed(self, effect: events.LeaderChanged) -> None:
        log.info("leader", leader_id=effect.leader_id, epoch=effect.epoch)
        self.delivery.lead(LeaderAndEpoch(effect.leader_id, effect.epoch), effect.epoch_start_offset)

    def learn_voters(self) -> None:
        for voter in self.machine.log.voters.voters:
            if voter.id != self.machine.local.id:
                self._peers.learn(voter.id, voter.endpoints)
        self._on_voters()

    async def _install(self, snapshot: OffsetAndEpoch) -> None:
        try:
            reader = await self.log.install(snapshot)
        except Malformed as error:
            log.error("corrupt_snapshot", snapshot=snapshot, error=error)
            self.step(events.InstallFailed(snapshot))
            return
        reader.close()
        self.step(events.SnapshotInstalled(snapshot, reader.voter_set, reader.kraft_version))
        self.learn_voters()

    def _alarm(self, effect: events.Alarm) -> None:
        """Once: peers of a leader that was wiped would say the same with every answer, until they have given it up."""
        if effect.text != self._alarm_said:
            self._alarm_said = effect.text
            log.error("quorum_unsound", reason=effect.text)

    # Time, tasks and the end ----------------------------------------

    def _arm(self) -> None:
        deadline_ms = self.machine.next_deadline_ms
        timer = self._timer
        if timer is not None and timer.is_pending and timer.deadline_ms == deadline_ms:
            return
        if timer is not None:
            timer.cancel()
        is_due_ever = deadline_ms < NEVER_MS and self.is_running
        self._timer = self._timers.at(deadline_ms, self._on_timer) if is_due_ever else None

    def _on_timer(self) -> None:
        self.step(events.TimerFired())

    def _clean_later(self) -> None:
        self._cleaning = self._timers.after(CLEANING_PERIOD_MS, self._clean_later)
        self._spawn(f"{WRITES}-clean", self._clean)

    async def _clean(self) -> None:
        """Give up the oldest snapshot and what follows it up to the next, when all is too large or too old."""
        beginning = self.log.expendable(self._settings, now_ms=self._world.clock.wall_ms())
        if beginning is None or beginning.offset > self.delivery.next_offset or self.machine.installing:
            return
        if await self.log.start_after(beginning):
            self.step(events.LogStartMoved(beginning))

    def _spawn(self, name: str, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        tasks = self._writes if name.startswith(WRITES) else self._tasks
        tasks.start(self._run(work, *arguments), name)

    async def _run(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        try:
            await work(*arguments)
        except (DiskFailure, FileClosed) as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Go on never: what a disk has lost, or what we got wrong, cannot be undone by trying again."""
        if self.failure is not None:
            return
        self.failure = error
        log.error("failed", error=error)
        self.halt()
        self._on_failure(error)

    def halt(self) -> None:
        self.is_running = False
        self._effects.clear()
        for timer in (self._timer, self._cleaning):
            if timer is not None:
                timer.cancel()
        self.delivery.close()
        for future, _ in self._asked.values():
            if not future.done():
                future.set_exception(ApiError(errors.BROKER_NOT_AVAILABLE))
        self._stoppable.set()
