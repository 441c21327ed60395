"""The life of one shard on one partition: loaded by replay, asked, and dropped when anything it relies on is gone.

What a step decides is appended as one batch and replayed at once; whoever waits for an answer gets it when the high
watermark has passed everything decided so far. If a write fails and the step does not know what to do then, or the
machine itself breaks, the shard is thrown away and loaded again from what is really in the log. Only
:mod:`barnabas.coordinator.runtime.runtime` makes these.
"""

from __future__ import annotations

import asyncio
import enum
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch, Record, Shard
from barnabas.coordinator.runtime.load_times import LoadTimes
from barnabas.coordinator.runtime.log_slices import Batches, slices
from barnabas.coordinator.runtime.shard_timers import ShardTimers
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.storage.transactions import read_marker
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.batch import HEADER_BYTES, BatchHeader
from barnabas.wire.records import decode_batch, encode_batch
from barnabas.world.clock import Clock
from barnabas.world.disk import DiskFailure, FileClosed
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("coordinator")

NO_REQUEST: Final = -1  # the id of what nobody waits for
REQUESTS_WAITING_MAX: Final = 100_000  # per shard; a join may wait for minutes, so there can be many
STEPS_UNCOMMITTED_MAX: Final = 10_000  # steps that wait for the high watermark before the shard asks for patience
LOAD_AGAIN: Final = "load again"  # the key of the only timer of a shard that could not be loaded
LOAD_AGAIN_MS_MIN: Final = 1_000
LOAD_AGAIN_MS_MAX: Final = 60_000
RECORD_OVERHEAD_BYTES_MAX: Final = 32  # lengths, deltas and attributes of a record beside its key and value

# What clients are told when a write fails: come back later, look for another coordinator, or do not try that again.
_AS_COORDINATORS_SAY: Final[dict[WireError, WireError]] = {
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
}


class State(enum.Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"  # the log cannot be read: another replica may do better, or it can be read later
    CLOSED = "closed"


class _Step(NamedTuple):
    """What is released when the log is committed up to an offset."""

    required_offset: int
    answers: list[Answer]
    sends: list[object]


class ShardRunner:
    def __init__(
        self,
        partition: Partition,
        *,
        timers: Timers,
        clock: Clock,
        now_ms: Callable[[], int],
        load_times: LoadTimes,
        tasks: Tasks,
        make_shard: Callable[[], Shard],
        perform: Callable[[Any], None],
    ) -> None:
        self._partition = partition
        self._now_ms = now_ms
        self._load_times = load_times
        self._tasks = tasks
        self._make_shard = make_shard
        self._perform = perform
        self._timers = ShardTimers(timers, clock, self._on_timer)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._steps: deque[_Step] = deque()
        self._request_count = 0
        self._load_again_ms = LOAD_AGAIN_MS_MIN
        self.loading_task: asyncio.Task[None] | None = None
        self._start_loading()

    @property
    def is_active(self) -> bool:
        return self._state is State.ACTIVE

    @property
    def is_loading(self) -> bool:
        return self._state is State.LOADING

    @property
    def has_failed(self) -> bool:
        return self._state is State.FAILED

    # --- being asked ----------------------------------------------------------------------------------------------

    def ready(self) -> Shard:
        if self._state is State.ACTIVE:
            return self._shard
        if self._state is State.LOADING:
            raise ApiError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        raise ApiError(errors.NOT_COORDINATOR)

    async def ask(self, request: object) -> Any:
        shard = self.ready()
        if len(self._waiting) >= REQUESTS_WAITING_MAX or len(self._steps) >= STEPS_UNCOMMITTED_MAX:
            raise ApiError(errors.COORDINATOR_NOT_AVAILABLE, "too many requests wait for this coordinator")
        request_id, future = self._expect()
        try:
            now_ms = self._now_ms()
            self._step(lambda: shard.handle(request_id, request, now_ms), now_ms, request_id)
            return await future
        finally:
            self._waiting.pop(request_id, None)

    def post(self, event: object) -> None:
        shard, now_ms = self.ready(), self._now_ms()
        self._step(lambda: shard.handle(NO_REQUEST, event, now_ms), now_ms, NO_REQUEST)

    async def append_marker(self, batch: bytearray, *, transaction_version: int = 0) -> None:
        """Write the control batch that ends a transaction, tell the shard, and wait until it is committed."""
        shard = self.ready()
        request_id, future = self._expect()
        effects = Effects().answer(request_id, None)
        try:
            last_offset, header = self._write(batch, transaction_version=transaction_version)
            marker = read_marker(batch, 0, header)
            assert marker is not None
            shard.replay_marker(header.producer_id, header.producer_epoch, is_commit=not marker.is_abort)
            self._release_later(effects, last_offset)
            await future
        except (ApiError, DiskFailure) as error:
            raise _as_coordinators_say(error) from error
        finally:
            self._waiting.pop(request_id, None)

    def _expect(self) -> tuple[int, asyncio.Future[Any]]:
        self._request_count += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._request_count] = future
        return self._request_count, future

    def _on_timer(self, key: Hashable, deadline_ms: int) -> None:
        if self._state is State.ACTIVE:
            shard, now_ms = self._shard, max(self._now_ms(), deadline_ms)
            self._step(lambda: shard.on_timer(key, now_ms), now_ms, NO_REQUEST)
        elif self._state is State.FAILED:
            self._start_loading()

    # --- one step -------------------------------------------------------------------------------------------------

    def _step(self, decide: Callable[[], Effects], now_ms: int, request_id: int) -> None:
        try:
            effects = decide()
        except ApiError as error:
            self._refuse(request_id, error)  # a machine refuses before it changes anything
            return
        except Exception:
            # We are wrong, and what the machine holds in memory may be half changed: back to what the log says.
            log.exception("coordinator's shard broke", partition=self._partition.id)
            self._refuse(request_id, ApiError(errors.UNKNOWN_SERVER_ERROR))
            self._reload()
            return
        self._apply(effects, now_ms)

    def _apply(self, effects: Effects, now_ms: int) -> None:
        last_offset = self._last_offset
        if effects.records:
            try:
                last_offset = self._append(effects, now_ms)
            except (ApiError, DiskFailure) as failure:
                error = _as_coordinators_say(failure)
                for answer in effects.answers:
                    self._refuse(answer.request_id, error)
                if effects.producer is not None and error.error is errors.INVALID_PRODUCER_EPOCH:
                    return  # a fenced producer's fault, not the log's: what the shard holds is still true
                log.warning("coordinator could not write", partition=self._partition.id, reason=failure)
                if effects.rescue is None:
                    self._reload()
                else:
                    # Sessions that were prolonged stay so, and what comes round comes round again.
                    self._set_timers(effects, now_ms)
                    self._step(effects.rescue, now_ms, NO_REQUEST)
                return
        self._set_timers(effects, now_ms)
        if effects.answers or effects.sends:
            self._release_later(effects, last_offset)

    def _set_timers(self, effects: Effects, now_ms: int) -> None:
        for timer in effects.timers:
            self._timers.set(timer.key, timer.deadline_ms, now_ms=now_ms)

    def _append(self, effects: Effects, now_ms: int) -> int:
        producer = effects.producer
        facts: dict[str, Any] = {}
        if producer is not None:
            facts = {**producer._asdict(), "is_transactional": True}
        last_offset = self._last_offset
        for records in self._portions(effects):
            batch = encode_batch([(now_ms, key, value, ()) for key, value in records], **facts)
            last_offset, header = self._write(batch)
            offset = last_offset - header.last_offset_delta
            for index, (key, value) in enumerate(records):
                self._shard.replay(key, value, offset=offset + index, producer=producer, timestamp_ms=now_ms)
        return last_offset

    def _portions(self, effects: Effects) -> Iterator[list[Record]]:
        """The records, batch by batch: one if they belong together, else as many as the topic's limit asks for."""
        if effects.is_atomic:
            yield effects.records
            return
        size_bytes_max = self._partition.log.settings.max_message_bytes - HEADER_BYTES
        portion: list[Record] = []
        size_bytes = 0
        for record in effects.records:
            record_bytes = len(record.key) + len(record.value or b"") + RECORD_OVERHEAD_BYTES_MAX
            if portion and size_bytes + record_bytes > size_bytes_max:
                yield portion
                portion, size_bytes = [], 0
            portion.append(record)
            size_bytes += record_bytes
        if portion:
            yield portion

    def _write(self, batch: bytearray, *, transaction_version: int = 0) -> tuple[int, BatchHeader]:
        rules = Rules.of(self._partition.log.settings, origin=Origin.COORDINATOR)
        now_ms = self._now_ms()
        validated = validate(batch, rules, now_ms=now_ms)
        appended = self._partition.append(
            validated, is_waiting_for_all=True, now_ms=now_ms, transaction_version=transaction_version
        )
        self._last_offset = appended.last_offset
        return appended.last_offset, validated.header

    def _release_later(self, effects: Effects, last_offset: int) -> None:
        self._steps.append(_Step(last_offset + 1, effects.answers, effects.sends))
        if self._partition.log.high_watermark > last_offset:
            self._release()
        else:
            self._partition.when_acknowledged(last_offset, self._on_acknowledged)

    def _on_acknowledged(self, is_committed: bool) -> None:
        # When it never will be, leadership is gone, and whoever still waits hears of that when we are closed.
        if is_committed:
            self._release()

    def _release(self) -> None:
        high_watermark = self._partition.log.high_watermark
        while self._steps and self._steps[0].required_offset <= high_watermark:
            step = self._steps.popleft()
            for request_id, response in step.answers:
                future = self._waiting.get(request_id)
                if future is not None and not future.done():
                    future.set_result(response)
            for message in step.sends:
                self._perform(message)

    def _refuse(self, request_id: int, error: ApiError) -> None:
        future = self._waiting.get(request_id)
        if future is not None and not future.done():
            future.set_exception(error)

    # --- loading and dropping -------------------------------------------------------------------------------------

    def _start_loading(self) -> None:
        self._state = State.LOADING
        self._shard = self._make_shard()
        self._last_offset = self._partition.log.end_offset - 1
        name, loading = f"load:{self._partition.id}", self._load(self._shard, self._load_times.start())
        self.loading_task = self._tasks.start(loading, name)

    async def _load(self, shard: Shard, is_loaded: Callable[[], None]) -> None:
        try:
            async for data, batches in slices(lambda: self._partition.log):
                if self._shard is not shard or self._state is not State.LOADING:
                    return
                replay(shard, data, batches)
                await asyncio.sleep(0)
        except (Malformed, ApiError, DiskFailure, FileClosed) as error:
            log.error("coordinator cannot be loaded", partition=self._partition.id, reason=error)
            if isinstance(error, DiskFailure):
                self._partition.log.reader.failed(error)
            self._load_failed(shard)
            return
        except Exception:
            log.exception("coordinator's shard broke while it was loaded", partition=self._partition.id)
            self._load_failed(shard)
            return
        finally:
            if self._shard is shard:
                self.loading_task = None
        if self._shard is shard and self._state is State.LOADING:
            self._state = State.ACTIVE
            self._load_again_ms = LOAD_AGAIN_MS_MIN
            is_loaded()
            self._last_offset = self._partition.log.end_offset - 1
            now_ms = self._now_ms()
            self._step(lambda: shard.loaded(now_ms), now_ms, NO_REQUEST)

    def _load_failed(self, shard: Shard) -> None:
        """Nobody is told to be patient for ever: clients look for another coordinator until this one can be loaded."""
        if self._shard is shard and self._state is State.LOADING:
            self._state = State.FAILED
            now_ms = self._now_ms()
            self._timers.set(LOAD_AGAIN, now_ms + self._load_again_ms, now_ms=now_ms)
            self._load_again_ms = min(2 * self._load_again_ms, LOAD_AGAIN_MS_MAX)

    def _reload(self) -> None:
        if self._state is State.ACTIVE:
            self._give_up()
            self._start_loading()

    def close(self) -> None:
        """Leadership is lost, or the broker stops."""
        if self._state is State.ACTIVE:
            self._give_up()
        self._state = State.CLOSED
        self._timers.close()

    def _give_up(self) -> None:
        """Nothing that was not committed may be confirmed: everybody who waits must ask again."""
        self._timers.close()
        self._steps.clear()
        for request_id, response in self._shard.unloaded():
            future = self._waiting.get(request_id)
            if future is not None and not future.done():
                future.set_result(response)
        for request_id in sorted(self._waiting):
            self._refuse(request_id, ApiError(errors.NOT_COORDINATOR))


def replay(shard: Shard, data: bytes, batches: Batches) -> None:
    """Put the records of a piece of the log into the shard, markers of transactions included."""
    for position, header in batches:
        if header.is_control:
            marker = read_marker(data, position, header)
            if marker is not None:
                shard.replay_marker(header.producer_id, header.producer_epoch, is_commit=not marker.is_abort)
            continue
        producer = ProducerIdEpoch(header.producer_id, header.producer_epoch) if header.is_transactional else None
        for record in decode_batch(data, position):
            if record.key is None:
                raise Malformed(f"the record at offset {record.offset} of a coordinator's log has no key")
            shard.replay(
                record.key, record.value, offset=record.offset, producer=producer, timestamp_ms=record.timestamp
            )


def _as_coordinators_say(failure: ApiError | DiskFailure) -> ApiError:
    if isinstance(failure, DiskFailure):
        return ApiError(errors.COORDINATOR_NOT_AVAILABLE, str(failure))
    return ApiError(_AS_COORDINATORS_SAY.get(failure.error, failure.error), failure.message)
