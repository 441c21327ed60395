"""The leader of one share-partition: the machine beside its partition, what is written down, locks and waiting fetches.

It loads the state from the share coordinator when it is first needed and is dropped when this broker stops to lead the
partition, when the share coordinator fences it, or when no member has a session with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from barnabas.broker.share.leader_errors import OVER, as_leaders_say
from barnabas.broker.share.log_batches import read_batches
from barnabas.broker.share.persister import Persister
from barnabas.broker.share.records import Acknowledgement, Acquired, Limits
from barnabas.broker.share.share_partition import Change, SharePartition
from barnabas.broker.share.tally import ShareTally
from barnabas.coordinator.share.settings import (
    BY_DURATION,
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ShareGroupSettings,
    duration_ms,
)
from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import UNINITIALIZED_OFFSET, Write
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.world.clock import Clock
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

log = logger("share")

WRITES_WAITING_MAX: Final = 10_000  # changes that wait to be written down; beyond it acknowledgements are refused


class Wanted(NamedTuple):
    """What a fetch asks for."""

    member_id: str
    records_max: int
    size_bytes_max: int
    batch_size: int
    is_record_limit: bool


class Fetched(NamedTuple):
    data: bytes
    acquired: list[Acquired]

    @property
    def record_count(self) -> int:
        return sum(row.last - row.first + 1 for row in self.acquired)


class _Waiting(NamedTuple):
    """A change that waits to be written down. Nobody waits for the release of expired locks."""

    change: Change
    batches: tuple[StateBatch, ...]
    done: asyncio.Future[None] | None


class ShareLeader:
    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        *,
        persister: Persister,
        clock: Clock,
        timers: Timers,
        tasks: Tasks,
        settings: Callable[[], ShareGroupSettings],
        tally: ShareTally,
        on_over: Callable[[ShareLeader], None],
        predecessor: ShareLeader | None = None,
    ) -> None:
        """``predecessor`` led the share-partition here before; its writes must end before the state is read."""
        self.key = key
        self.partition = partition
        self.members: set[str] = set()  # members with a session that includes this share-partition
        self.machine: SharePartition | None = None  # None until the state is loaded
        self.failure: ApiError | None = None  # why the state could not be loaded
        self.is_over = False
        self._leader_epoch = partition.leader_epoch
        self._state_epoch = 0
        self._persister = persister
        self._clock = clock
        self._timers = timers
        self._tasks = tasks
        self._settings = settings
        self._tally = tally
        self._on_over = on_over
        self._is_reading = False
        self._predecessor = predecessor
        self._writer: asyncio.Task[None] | None = None
        self._writes: list[_Waiting] = []
        self._waiters: dict[Callable[[], None], None] = {}  # fetches without records, in the order of their arrival
        self._timer: Timer | None = None
        self._timer_ms = 0
        partition.readers.add(self.notify)
        tasks.start(self._load(), f"share-load:{key.coordinator_key}")

    @property
    def limits(self) -> Limits:
        settings = self._settings()
        return Limits(
            settings.record_lock_duration_ms,
            settings.delivery_count_limit,
            settings.partition_max_record_locks,
            settings.renew_acknowledge_enable,
        )

    @property
    def lock_ms(self) -> int:
        return self._settings().record_lock_duration_ms

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads the partition in the epoch in which the state was loaded."""
        return not self.is_over and self.partition.is_leader and self.partition.leader_epoch == self._leader_epoch

    @property
    def is_writing(self) -> bool:
        return self._writer is not None

    async def settled(self) -> None:
        """Wait until no write is under way."""
        if self._writer is not None:
            await asyncio.wait((self._writer,))

    def close(self) -> None:
        """Nothing is delivered or acknowledged from now on; writes that are under way end."""
        self.is_over = True
        self.partition.readers.discard(self.notify)
        if self._timer is not None:
            self._timer.cancel()
        self._wake_all()

    def _over(self) -> None:
        if not self.is_over:
            self._on_over(self)

    # --- loading --------------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        started_ms = self._clock.monotonic_ms()
        try:
            if self._predecessor is not None:
                await self._predecessor.settled()
                self._predecessor = None
            state = await self._persister.read(self.key, leader_epoch=self._leader_epoch)
            if self.is_over:
                return
            self._state_epoch = state.state_epoch
            start = state.start_offset
            self.machine = SharePartition(
                self._initial_offset() if start == UNINITIALIZED_OFFSET else start, state.batches
            )
        except ApiError as error:
            log.info("share-partition was not loaded", share_partition=self.key.coordinator_key, reason=error)
            self.failure = as_leaders_say(error)
        self._tally.load_ms.add(self._clock.monotonic_ms() - started_ms)
        self._wake_all()

    def _initial_offset(self) -> int:
        reset, partition_log = self._settings().auto_offset_reset, self.partition.log
        if reset == EARLIEST:
            return partition_log.log_start_offset
        if reset != LATEST:
            back_ms = duration_ms(reset.removeprefix(BY_DURATION)) or 0
            found = partition_log.offset_for_time(self._clock.wall_ms() - back_ms)
            if found is not None:
                return found.offset
        return partition_log.high_watermark

    # --- fetching -------------------------------------------------------------------------------------------------

    @property
    def _is_committed_only(self) -> bool:
        return self._settings().isolation_level == READ_COMMITTED

    @property
    def has_records(self) -> bool:
        """Whether a fetch would find records that it may acquire."""
        if self.machine is None:
            return False
        end_offset = self.partition.readable_end(is_committed_only=self._is_committed_only)
        return self.machine.can_acquire(self._clock.monotonic_ms(), self.limits, end_offset)

    def check(self) -> None:
        """ApiError if this broker cannot deliver records of the share-partition."""
        if self.failure is not None:
            raise self.failure
        if not self.is_current:
            self._over()
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)

    async def fetch(self, wanted: Wanted, is_wanted: Callable[[], bool]) -> Fetched | None:
        """Acquire records for a member; None if there are none, or if another fetch is reading.

        The records are acquired only if ``is_wanted`` holds after they were read.
        """
        self.check()
        machine = self.machine
        if machine is None or self._is_reading or wanted.records_max <= 0:
            return None
        self._is_reading = True
        try:
            return await self._read(machine, wanted, is_wanted)
        finally:
            self._is_reading = False
            self.notify()

    async def _read(self, machine: SharePartition, wanted: Wanted, is_wanted: Callable[[], bool]) -> Fetched | None:
        acquired: list[Acquired] = []
        parts: list[bytes] = []
        count, size_bytes = 0, 0
        while count < wanted.records_max and (size_bytes < wanted.size_bytes_max or not parts):
            machine.trim(self.partition.log.log_start_offset)
            if not self.has_records:
                break
            offset = machine.next_offset(self._clock.monotonic_ms())
            found = await read_batches(
                self.partition,
                offset,
                size_bytes_max=wanted.size_bytes_max - size_bytes,
                is_committed_only=self._is_committed_only,
            )
            if found is None or not self.is_current or not is_wanted():
                break
            rows = machine.acquire(
                wanted.member_id,
                found.batches,
                offset=offset,
                records_max=wanted.records_max - count,
                batch_size=wanted.batch_size,
                is_record_limit=wanted.is_record_limit,
                now_ms=self._clock.monotonic_ms(),
                limits=self.limits,
            )
            if rows:
                acquired += rows
                parts.append(found.of(rows))
                count += sum(row.last - row.first + 1 for row in rows)
                size_bytes += len(parts[-1])
            elif machine.next_offset(self._clock.monotonic_ms()) <= offset:
                break  # nothing was archived either
            if rows and rows[-1].delivery_count > 1:
                break  # redelivered records come in their own answer
        if acquired:
            self._arm(self._clock.monotonic_ms() + self.lock_ms)
            return Fetched(parts[0] if len(parts) == 1 else b"".join(parts), acquired)
        return None

    # --- waiting --------------------------------------------------------------------------------------------------

    def wait(self, callback: Callable[[], None]) -> None:
        """Call back once when there may be records. The caller must fetch then, or call ``notify``."""
        self._waiters[callback] = None

    def stop_waiting(self, callback: Callable[[], None]) -> None:
        self._waiters.pop(callback, None)

    def notify(self) -> None:
        """Wake the fetch that has waited longest, if there is something for it. It wakes the next one when done."""
        if not self.is_current:
            self._wake_all()
        elif self._waiters and not self._is_reading and self.has_records:
            callback = next(iter(self._waiters))
            del self._waiters[callback]
            callback()

    def _wake_all(self) -> None:
        waiters, self._waiters = self._waiters, {}
        for callback in waiters:
            callback()

    # --- acknowledging --------------------------------------------------------------------------------------------

    async def acknowledge(self, member_id: str, rows: Sequence[Acknowledgement]) -> None:
        """Acknowledge records of a member; ApiError if that is not allowed or could not be written down."""
        self.check()
        if self.machine is None:
            raise ApiError(errors.INVALID_RECORD_STATE, "the share-partition is being loaded")
        if len(self._writes) >= WRITES_WAITING_MAX:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, "too many acknowledgements wait to be written down")
        now_ms = self._clock.monotonic_ms()
        change = self.machine.acknowledge(member_id, rows, now_ms=now_ms, limits=self.limits)
        if change.ranges:
            await asyncio.shield(self._write(change))

    async def release(self, member_id: str) -> None:
        """Make the records that a member has acquired available again."""
        if self.machine is not None and self.is_current:
            change = self.machine.release(member_id, self.limits)
            if change.ranges:
                await asyncio.shield(self._write(change))

    def _write(self, change: Change) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue(_Waiting(change, change.batches(), done))
        return done

    def _queue(self, waiting: _Waiting) -> None:
        self._writes.append(waiting)
        if self._writer is None:
            self._writer = self._tasks.start(self._write_all(), f"share-write:{self.key.coordinator_key}")

    async def _write_all(self) -> None:
        """Write changes down, all that have come during the last write in the next one."""
        await asyncio.sleep(0)  # what arrives in the same turn of the loop shares the first write
        try:
            while self._writes:
                writes, self._writes = self._writes, []
                failure: ApiError | None = None
                try:
                    await self._persister.write(self._state_of(writes))
                except ApiError as error:
                    failure = error
                self._complete(writes, failure)
        finally:
            self._writer = None

    def _state_of(self, writes: Sequence[_Waiting]) -> Write:
        assert self.machine is not None
        return Write(
            self.key,
            self._state_epoch,
            self._leader_epoch,
            self.machine.start_offset,
            self.machine.complete_count,
            tuple(sorted(batch for waiting in writes for batch in waiting.batches)),
        )

    def _complete(self, writes: Sequence[_Waiting], failure: ApiError | None) -> None:
        assert self.machine is not None
        now_ms, limits = self._clock.monotonic_ms(), self.limits
        for waiting in writes:
            expired = self.machine.complete(waiting.change, is_written=failure is None, now_ms=now_ms, limits=limits)
            if expired and not self.is_over:
                self._queue(_Waiting(Change(), expired, None))
        for waiting in writes:
            if waiting.done is not None and not waiting.done.done():
                if failure is None:
                    waiting.done.set_result(None)
                else:
                    waiting.done.set_exception(as_leaders_say(failure))
        if failure is not None:
            log.info("share state was not written", share_partition=self.key.coordinator_key, reason=failure)
            if failure.error in OVER:
                self._over()
        self.notify()

    # --- locks ----------------------------------------------------------------------------------------------------

    def _arm(self, due_ms: int) -> None:
        if self.is_over or (self._timer is not None and self._timer_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = due_ms
        self._timer = self._timers.at(due_ms, self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        if self.machine is None or self.is_over:
            return
        expired = self.machine.expire(self._clock.monotonic_ms(), self.limits)
        if expired:
            self._tally.lock_timeouts += sum(batch.last_offset - batch.first_offset + 1 for batch in expired)
            self._queue(_Waiting(Change(), expired, None))
        due_ms = self.machine.next_due_ms()
        if due_ms is not None:
            self._arm(due_ms)
        self.notify()
