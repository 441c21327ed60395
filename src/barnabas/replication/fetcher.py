"""One connection of a follower to a leader: fetch, append, and say how far we are by fetching again.

What an answer means is decided in :mod:`barnabas.replication.follower`; here it is fetched and carried out, in one task
that ends with its last partition. :mod:`barnabas.replication.fetchers` makes the fetchers and fills them.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, cast

from barnabas.model.errors import BarnabasError, WireError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.replication import following
from barnabas.replication.follower import (
    Append,
    Diverged,
    InFlight,
    LeaderSession,
    Limits,
    Locate,
    Park,
    Pause,
    key_of,
    only_row,
    react,
)
from barnabas.replication.partition import Partition
from barnabas.replication.settings import ReplicationSettings
from barnabas.replication.throttle import Throttle
from barnabas.wire.fetch_session import Key, Wanted
from barnabas.wire.message import Message
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.world.disk import Buffer, DiskFailure, DiskFull
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("fetcher")

LATEST: Final = -1
EARLIEST: Final = -2
THROTTLED_MS: Final = 100  # how long a partition is left out when its throttle is exceeded
PAUSE_MS_MIN: Final = 50  # after the first error; it doubles up to replica.fetch.backoff.ms


class Sender(Protocol):
    """:class:`barnabas.transport.links.Links`, as far as a follower needs it."""

    async def send(self, node_id: int, request: Message, *, lane: str, timeout_ms: int) -> Message: ...


class Home(Protocol):
    """What a fetcher needs of the broker it works for."""

    broker_id: int
    links: Sender
    timers: Timers
    throttle: Throttle

    @property
    def settings(self) -> ReplicationSettings: ...

    def broker_epoch(self) -> int: ...

    def now_ms(self) -> int: ...

    def failed(self, error: BaseException) -> None: ...


class Fetching:
    """One partition of a fetcher, in one leader epoch: where it stands with its leader."""

    __slots__ = ("is_parked", "key", "lag", "leader_epoch", "partition", "pauses", "ready_ms")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key = key_of(partition.topic_id, partition.id.partition)
        self.leader_epoch = partition.leader_epoch
        self.ready_ms = 0
        self.pauses = 0  # in a row
        self.is_parked = False
        self.lag: int | None = None  # records that the leader has committed and we have not; None until it said so

    @property
    def is_unsynced(self) -> bool:
        """It must be on the device before it counts (flush.messages=1), and some of it is not."""
        found = self.partition.log
        return self.partition.must_flush and not self.is_parked and found.recovery_point < found.end_offset

    def wanted(self, size_bytes_max: int) -> Wanted:
        found = self.partition.log
        return Wanted(found.end_offset, self.leader_epoch, size_bytes_max, found.latest_epoch, found.log_start_offset)


class Fetcher:
    def __init__(self, leader_id: int, number: int, home: Home) -> None:
        self.leader_id = leader_id
        self.partitions: dict[Key, Fetching] = {}
        self._home = home
        self._lane = f"replica:{number}"
        self._session = LeaderSession(broker_id=home.broker_id)
        # A partition is fresh until it is wanted for the first time, or again after a pause.
        self._fresh: dict[Key, Fetching] = {}
        self._paused: dict[Key, Fetching] = {}
        self._news = asyncio.Event()
        self._tasks = Tasks(on_failure=home.failed)
        self._task: asyncio.Task[None] | None = None
        self._is_fetching = False
        self._is_hurrying = False
        self._hurried: tuple[InFlight, asyncio.Task[Message]] | None = None
        self._refused: dict[str, list[TopicPartition]] = {}  # by error, of the answer that is being taken

    # --- what to fetch --------------------------------------------------------------------------------------------

    def put(self, partition: Partition) -> None:
        """Fetch this partition from now on, in its present epoch."""
        state = Fetching(partition)
        self.partitions[state.key] = self._fresh[state.key] = state
        self._paused.pop(state.key, None)
        self._news.set()
        if self._task is None:
            self._task = self._tasks.start(self._run(), f"fetch:{self.leader_id}:{self._lane}")
        elif self._is_fetching and not self._is_hurrying:
            self._is_hurrying = True
            asyncio.get_running_loop().call_soon(self._hurry)

    def drop(self, key: Key) -> None:
        """What is under way for this partition comes to nothing."""
        self._fresh.pop(key, None)
        self._paused.pop(key, None)
        self._session.unwant(key)
        if self.partitions.pop(key, None) is not None and not self.partitions:
            self._cancel()

    async def stop(self) -> None:
        self.partitions.clear()
        self._cancel()
        await self._tasks.stop()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._forget_hurried()
        self._is_fetching = self._is_hurrying = False
        self._session.failed()

    async def _admit(self) -> None:
        """Want what is fresh or has rested. What is not on the device yet gets there before it counts as ours."""
        now_ms = self._home.now_ms()
        for key in [key for key, state in self._paused.items() if state.ready_ms <= now_ms]:
            self._fresh[key] = self._paused.pop(key)
        unsynced = [state for state in self._fresh.values() if state.is_unsynced]
        if unsynced:
            await asyncio.gather(*(self._sync(state) for state in unsynced))
        self._want_fresh()

    def _want_fresh(self) -> None:
        for key, state in list(self._fresh.items()):
            if not state.is_unsynced:
                del self._fresh[key]
                self._decide(state)

    def _decide(self, state: Fetching) -> None:
        """Whether the next request wants a partition: not while it is parked, rests or is held back."""
        settings, now_ms = self._home.settings, self._home.now_ms()
        if (
            state.partition.is_throttled_follower
            and state.lag != 0
            and self._home.throttle.is_exceeded(settings.follower_bytes_per_second, now_ms)
        ):
            state.ready_ms = max(state.ready_ms, now_ms + THROTTLED_MS)
        if state.is_parked:
            self._session.unwant(state.key)
        elif state.ready_ms > now_ms:
            self._session.unwant(state.key)
            self._paused[state.key] = state
        else:
            self._session.want(state.key, state.wanted(settings.partition_bytes_max))

    # --- fetching -------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        failures = 0  # in a row
        while True:
            await self._admit()
            if not self._session:
                await self._wait()
                continue
            try:
                error = await self._round()
            except (BarnabasError, TimeoutError) as failure:
                log.info("leader is not reached", leader=self.leader_id, reason=failure)
                self._session.failed()
            else:
                if error is None:
                    failures = 0
                    continue
                log.info("fetch is refused", leader=self.leader_id, error=error.name)
            self._forget_hurried()
            await self._home.timers.sleep(self._pause_ms(failures))
            failures += 1

    async def _round(self) -> WireError | None:
        """Fetch and take the answer, and that of the hurried request behind it; what the leader objects to, if so."""
        sent = self._session.request(self._limits(), broker_epoch=self._home.broker_epoch())
        self._is_fetching = True
        try:
            response = cast(FetchResponse, await self._send(sent.request))
        finally:
            self._is_fetching = False
        error = self._session.answered(response)
        while error is None:
            await self._take(sent, response)
            self._session.taken()
            if self._hurried is None:
                break
            (sent, answer), self._hurried = self._hurried, None
            response = cast(FetchResponse, await answer)
            error = self._session.answered(response)
        return error

    def _hurry(self) -> None:
        """A partition has come while a fetch waits at the leader: another fetch names it, and ends that wait."""
        self._is_hurrying = False
        if not self._is_fetching or self._hurried is not None or not self._session.is_open:
            return
        self._want_fresh()
        sent = self._session.request(self._limits(), broker_epoch=self._home.broker_epoch())
        sending = self._send(sent.request)
        name = f"hurry:{self.leader_id}:{self._lane}"
        self._hurried = sent, self._tasks.call(sending, name)

    def _pause_ms(self, failures: int) -> int:
        # Soon at first: after an election leader and followers hear of it within moments of each other.
        return min(PAUSE_MS_MIN << min(failures, 16), self._home.settings.backoff_ms)

    def _forget_hurried(self) -> None:
        if self._hurried is not None:
            self._hurried[1].cancel()
            self._hurried = None

    async def _wait(self) -> None:
        """Until there is something to fetch: a new partition, or one whose pause is over."""
        self._news.clear()
        pauses = [state.ready_ms for state in self._paused.values()]
        timer = self._home.timers.at(min(pauses), self._news.set) if pauses else None
        try:
            await self._news.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _limits(self) -> Limits:
        settings = self._home.settings
        return Limits(settings.response_bytes_max, settings.size_bytes_min, settings.wait_ms)

    async def _send(self, request: Message) -> Message:
        return await self._home.links.send(
            self.leader_id, request, lane=self._lane, timeout_ms=self._home.settings.timeout_ms
        )

    # --- taking an answer -----------------------------------------------------------------------------------------

    async def _take(self, sent: InFlight, response: FetchResponse) -> None:
        taken = 0
        states: list[Fetching] = []
        for topic in response.responses:
            for row in topic.partitions:
                key = key_of(topic.topic_id, row.partition_index)
                state, asked = self.partitions.get(key), self._session.asked_in(sent, key)
                if state is None or asked is None or not self._is_current(state, asked):
                    continue
                states.append(state)
                try:
                    taken += await self._take_row(state, row)
                except DiskFailure as failure:
                    self._has_no_disk(state, failure)
                except BarnabasError as error:
                    # Bytes that are no batches, or not those that follow: from a wire, a disk, or a leader's mistake.
                    log.error("answer is not taken", partition=state.partition.id, leader=self.leader_id, reason=error)
                    self._pause(state)
                if taken >= following.SLICE_BYTES:
                    taken = 0
                    await asyncio.sleep(0)
        for name, partitions in self._refused.items():
            # One line for all: after an election there may be thousands.
            log.info("not fetched", leader=self.leader_id, error=name, count=len(partitions), partition=partitions[0])
        self._refused.clear()
        unsynced = [state for state in states if state.is_unsynced]
        if unsynced:
            # Before the next fetch names the new end: the leader takes what is fetched past for safe.
            await asyncio.gather(*(self._sync(state) for state in unsynced))
        for state in states:
            if self.partitions.get(state.key) is state:
                self._decide(state)

    def _is_current(self, state: Fetching, asked: Wanted) -> bool:
        """Whether an answer still fits: same epoch, and nothing has been appended or cut since it was asked for."""
        return (
            self.partitions.get(state.key) is state
            and not state.is_parked
            and asked.leader_epoch == state.leader_epoch
            and asked.fetch_offset == state.partition.log.end_offset
        )

    async def _take_row(self, state: Fetching, row: FetchResponse.PartitionData) -> int:
        """Do what the answer says; how many bytes of the present turn of the loop it took."""
        partition = state.partition
        match react(row):
            case Append(records, high_watermark, log_start_offset):
                return await self._append(state, cast(Buffer, records), high_watermark, log_start_offset)
            case Diverged() | Locate() as news:
                before = state.wanted(0)
                if isinstance(news, Diverged):
                    following.cut(partition, news)
                else:
                    await self._locate(state)
                if state.wanted(0) == before:
                    self._pause(state)  # to ask the very same again at once would be a loop without end
            case Pause(error):
                self._refused.setdefault(error.name, []).append(partition.id)
                self._pause(state)
            case Park(error):
                self._refused.setdefault(error.name, []).append(partition.id)
                state.is_parked = True
        return 0

    async def _append(self, state: Fetching, records: Buffer, high_watermark: int, log_start_offset: int) -> int:
        partition, taken = state.partition, 0
        for piece in following.slices(records):
            if taken:
                await asyncio.sleep(0)
                if self.partitions.get(state.key) is not state:
                    return 0
            following.append(partition, piece, leader_epoch=state.leader_epoch)
            taken = len(piece)
            partition.traffic.replication_bytes_in += taken
            if partition.is_throttled_follower:
                self._home.throttle.record(taken)
        following.keep_up(partition, high_watermark=high_watermark, log_start_offset=log_start_offset)
        state.lag = max(0, high_watermark - partition.log.end_offset)
        state.pauses = 0
        return taken

    async def _sync(self, state: Fetching) -> None:
        try:
            await state.partition.log.flush()
        except DiskFailure as failure:
            self._has_no_disk(state, failure)
            if self._fresh.pop(state.key, None) is not None:
                self._decide(state)

    def _has_no_disk(self, state: Fetching, failure: DiskFailure) -> None:
        """A full disk may have room again. Of one that failed the store has heard: the partition goes with it."""
        if state.pauses == 0:
            log.error("follower has no disk", partition=state.partition.id, reason=failure)
        if isinstance(failure, DiskFull):
            self._pause(state)
        else:
            state.is_parked = True

    def _pause(self, state: Fetching) -> None:
        state.ready_ms = self._home.now_ms() + self._pause_ms(state.pauses)
        state.pauses += 1

    async def _locate(self, state: Fetching) -> None:
        """The leader does not have our offset: ask where its log ends and starts, and cut or begin anew."""
        end = await self._offset_at(state, LATEST)
        start = await self._offset_at(state, EARLIEST) if end is not None else None
        if self.partitions.get(state.key) is not state:
            return
        if end is not None and start is not None:
            following.settle(state.partition, leader_start=start, leader_end=end)

    async def _offset_at(self, state: Fetching, timestamp: int) -> int | None:
        key = state.partition.id
        asked = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=key.partition, current_leader_epoch=state.leader_epoch, timestamp=timestamp
        )
        answer = await self._send(
            ListOffsetsRequest(
                replica_id=self._home.broker_id,
                topics=[ListOffsetsRequest.ListOffsetsTopic(name=key.topic, partitions=[asked])],
            )
        )
        row = only_row(cast(ListOffsetsResponse, answer))
        if row.error_code:
            error = error_of(row.error_code).name
            log.info("leader does not say where its log is", partition=key, leader=self.leader_id, error=error)
            return None
        return row.offset
