"""Fetches ahead: one request per broker under way, over a fetch session, for the cursors that have room; while that one
waits for news, another beside it for cursors that have got room meanwhile.

Chunks go into the cursors as they came; nothing is decoded here. The consumer wakes the fetcher when it has taken
records and waits for its news.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.moved_leaders import is_leader_found, learn_leaders
from barnabas.client.errors import LogTruncated, OffsetGone, RecordTooLarge
from barnabas.client.fetch.cursor import UNVALIDATED, Chunk, Cursor
from barnabas.client.fetch.epochs import EpochStart
from barnabas.client.fetch.isolation import Visibility
from barnabas.client.fetch.lanes import SIDE_LANE, FetchLanes
from barnabas.client.fetch.request import request_of
from barnabas.client.fetch.truncation import Doubt, EpochEnd, ends_of_epochs
from barnabas.client.offsets import EARLIEST, LATEST, resolve
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, Malformed, error_of
from barnabas.model.ids import NO_BROKER, ZERO_UUID, TopicPartition
from barnabas.observe.log import logger
from barnabas.transport.versions import NO_LIMIT, Shaped
from barnabas.wire.batch import iterate
from barnabas.wire.fetch_session import FetchSession, Key, Plan, Wanted, sessionless
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

PAUSE_MS_MIN: Final = 1  # whatever retry.backoff.ms says: a pause that is over at once is none
NAMED_VERSION_MAX: Final = 12  # from 13 on Fetch speaks of topic ids
STALE_LOOKS_MAX: Final = 10  # at metadata that is older than what was read
_SESSION_ERRORS: Final = frozenset(
    {errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH, errors.FETCH_SESSION_TOPIC_ID_ERROR}
)

END_TIMEOUT_MS: Final = 1000  # of a request that ends a fetch session while the consumer closes

_log: Final = logger("client")


class Fetcher:
    def __init__(self, cluster: Cluster, settings: ConsumerSettings, cursors: Mapping[TopicPartition, Cursor]) -> None:
        self._cluster = cluster
        self._settings = settings
        self._cursors = cursors
        self._sessions: dict[int, FetchSession] = {}
        self._lanes = FetchLanes(wait_ms_max=settings.fetch_max_wait_ms)
        self._fetching: set[asyncio.Task[None]] = set()
        self._resetting: dict[TopicPartition, asyncio.Task[None]] = {}
        self._validating: dict[TopicPartition, asyncio.Task[None]] = {}
        self._stale_looks: dict[TopicPartition, int] = {}
        self._wake = asyncio.Event()
        self.news = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._wake.clear()
                looked_at = loop.time()
                held_until = await self._look(looked_at)
                # A look may take longer than the pause that it has asked for: that time counts too, or nobody wakes us.
                waiting = [c.not_before for c in self._cursors.values() if c.not_before > looked_at] + held_until
                try:
                    async with asyncio.timeout_at(min(waiting, default=None)):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            for task in (*self._fetching, *self._resetting.values(), *self._validating.values()):
                task.cancel()

    async def end_sessions(self) -> None:
        """Let the brokers drop the sessions of this consumer; a broker that does not answer drops its session later."""
        plans = {source: plan for source, each in self._sessions.items() if (plan := each.end()) is not None}
        await asyncio.gather(*(self._end(source, plan) for source, plan in plans.items()))

    async def _end(self, source: int, plan: Plan) -> None:
        request = Shaped(FetchRequest, lambda version: request_of(plan, self._settings, version, wait_ms=0))
        try:
            await self._cluster.call(source, request, FetchResponse, lane=SIDE_LANE, timeout_ms=END_TIMEOUT_MS)
        except BarnabasError as error:
            _log.debug("fetch session not ended", broker=source, reason=error)

    async def _look(self, now: float) -> list[float]:
        """Ask whom there is to ask; the times at which more may be asked than now."""
        by_source: dict[int, dict[TopicPartition, Cursor]] = {}
        doubtful: dict[int, dict[TopicPartition, Cursor]] = {}
        for place, cursor in list(self._cursors.items()):
            if not self._has_room(cursor, now) or not await self._is_known(cursor, now):
                continue
            source, is_valid = self._whom_to_ask(cursor, now)
            if source is not None:
                (by_source if is_valid else doubtful).setdefault(source, {})[place] = cursor
        held_until = [self._start(source, cursors, now) for source, cursors in sorted(by_source.items())]
        for leader, cursors in sorted(doubtful.items()):
            task = asyncio.get_running_loop().create_task(self._validate(leader, cursors), name=f"validate:{leader}")
            self._validating |= dict.fromkeys(cursors, task)
        return [time for time in held_until if time is not None]

    def _start(self, source: int, cursors: dict[TopicPartition, Cursor], now: float) -> float | None:
        lane = self._lanes.free(source, now)
        if lane is None:
            return self._lanes.free_at(source, now)
        wait_ms = self._lanes.depart(source, lane, cursors, now)
        fetching = self._fetch(source, lane, cursors, wait_ms)
        task = asyncio.get_running_loop().create_task(fetching, name=f"{lane}:{source}")
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)
        return None

    def _look_again(self, source: int, now: float) -> dict[TopicPartition, Cursor]:
        """Whom this source can be asked for once more, by what is known: what is not known is for the next look."""
        cursors: dict[TopicPartition, Cursor] = {}
        for place, cursor in self._cursors.items():
            if not self._has_room(cursor, now) or self._cluster.known_topic(place.topic) is None:
                continue
            if self._whom_to_ask(cursor, now) == (source, True):
                cursors[place] = cursor
        return cursors

    def _has_room(self, cursor: Cursor, now: float) -> bool:
        place = cursor.partition
        if not cursor.wants_fetch(now) or self._lanes.is_asked(place):
            return False
        return place not in self._resetting and place not in self._validating

    async def _is_known(self, cursor: Cursor, now: float) -> bool:
        """Whether what is known of the topic is fresh."""
        try:
            await self._cluster.topic(cursor.partition.topic, timeout_ms=0)
        except BarnabasError as error:
            self._postpone(cursor, error, now)
            return False
        return True

    def _whom_to_ask(self, cursor: Cursor, now: float) -> tuple[int | None, bool]:
        """The broker to read from, if there is one now, and whether its log is known to have what was read."""
        place = cursor.partition
        cursor.is_of(self._cluster.metadata.topics[place.topic].id)
        is_valid = cursor.is_valid_in(self._cluster.metadata.leader_epoch(place))
        if not is_valid:
            cursor.closest_replica = NO_BROKER  # only the leader can tell, and may know a closer one
            if self._is_behind(cursor):
                self._postpone(cursor, ApiError(errors.FENCED_LEADER_EPOCH), now)
                return None, False
        return self._source(cursor, now), is_valid

    def _source(self, cursor: Cursor, now: float) -> int | None:
        """The leader, or the replica that it has sent us to, for as long as metadata would count as fresh (KIP-392)."""
        if cursor.closest_replica != NO_BROKER:
            if now < cursor.closest_until and cursor.closest_replica in self._cluster.metadata.brokers:
                return cursor.closest_replica
            cursor.closest_replica = NO_BROKER
        leader = self._cluster.leader_of(cursor.partition)
        if leader is None:
            self._postpone(cursor, ApiError(errors.LEADER_NOT_AVAILABLE), now)
        return leader

    def _postpone(self, cursor: Cursor, error: BarnabasError, now: float) -> None:
        """Try again a little later, if it may help; otherwise the consumer must hear of it."""
        if not error.retriable:
            cursor.error = error
            self.news.set()
            return
        self._cluster.invalidate()
        cursor.not_before = now + max(self._cluster.backoff().next_ms(), PAUSE_MS_MIN) / 1000

    # --- one fetch ------------------------------------------------------------------------------------------------

    async def _fetch(self, source: int, lane: str, cursors: dict[TopicPartition, Cursor], wait_ms: int) -> None:
        """Until nobody has room. The next request is out before the consumer hears of what came: it decodes that while
        the broker reads, and the system receives, what comes next."""
        loop = asyncio.get_running_loop()
        while cursors:
            try:
                await self._fetch_once(source, lane, cursors, wait_ms)
            finally:
                self._lanes.arrive(source, lane)
                self.wake()  # others may have to be asked now
            now = loop.time()
            if self._lanes.free(source, now) != lane:
                return
            cursors = self._look_again(source, now)
            if cursors:
                wait_ms = self._lanes.depart(source, lane, cursors, now)

    async def _fetch_once(self, source: int, lane: str, cursors: dict[TopicPartition, Cursor], wait_ms: int) -> None:
        loop = asyncio.get_running_loop()
        session = self._sessions.setdefault(source, FetchSession())
        seeks = {place: cursor.seeks for place, cursor in cursors.items()}
        try:
            wanted = {place: self._wanted(cursor) for place, cursor in cursors.items()}
            keyed = {self._key(place): want for place, want in wanted.items()}
            if lane == SIDE_LANE:
                plan = sessionless(keyed)
            else:
                session.want_only(keyed)
                plan = session.plan()
            is_named = any(topic_id == ZERO_UUID for _, topic_id, _ in plan.wanted)
            answer = await self._cluster.call(
                source,
                Shaped(FetchRequest, lambda version: request_of(plan, self._settings, version, wait_ms=wait_ms)),
                FetchResponse,
                lane=lane,
                timeout_ms=self._settings.request_timeout_ms + self._settings.fetch_max_wait_ms,
                version_max=NAMED_VERSION_MAX if is_named else NO_LIMIT,
            )
            if lane != SIDE_LANE:
                session.answered(answer)
            if answer.error_code:
                raise ApiError(error_of(answer.error_code))
            self._take(answer, cursors, seeks, wanted, loop.time())
        except BarnabasError as error:
            if lane != SIDE_LANE:
                session.failed()
            if not (isinstance(error, ApiError) and error.error in _SESSION_ERRORS):
                for cursor in cursors.values():
                    self._postpone(cursor, error, loop.time())
                    cursor.closest_replica = NO_BROKER  # the leader is asked, who may know a better one

    def _wanted(self, cursor: Cursor) -> Wanted:
        topic = self._cluster.metadata.topics[cursor.partition.topic]
        epoch = topic.partitions[cursor.partition.partition].leader_epoch
        last_epoch = cursor.epoch_before(cursor.fetch_offset)
        return Wanted(cursor.fetch_offset, epoch, self._settings.max_partition_fetch_bytes, last_epoch)

    def _key(self, place: TopicPartition) -> Key:
        return place.topic, self._cluster.metadata.topics[place.topic].id, place.partition

    # --- what came ------------------------------------------------------------------------------------------------

    def _take(
        self,
        answer: FetchResponse,
        cursors: dict[TopicPartition, Cursor],
        seeks: dict[TopicPartition, int],
        wanted: dict[TopicPartition, Wanted],
        now: float,
    ) -> None:
        answered = list(self._parts(answer))
        learn_leaders(self._cluster, answered, answer.node_endpoints)
        filled = sum(1 for _, part in answered if part.records)
        for place, part in answered:
            cursor = cursors.get(place)
            if cursor is None or cursor.seeks != seeks[place] or self._cursors.get(place) is not cursor:
                continue
            if cursor.valid_epoch != wanted[place].leader_epoch or cursor.fetch_offset != wanted[place].fetch_offset:
                continue  # a leader that was late, when another one was asked already
            row = error_of(part.error_code)
            is_found = is_leader_found(self._cluster, place, row, asked_epoch=wanted[place].leader_epoch)
            if row is errors.NONE and part.diverging_epoch.epoch >= 0:
                self._doubt(cursor, now)
            elif row is errors.NONE:
                self._add(cursor, part, wanted[place].leader_epoch, is_alone=filled == 1)
                if part.preferred_read_replica != NO_BROKER:
                    cursor.closest_replica = part.preferred_read_replica
                    cursor.closest_until = now + self._settings.metadata_max_age_ms / 1000
            elif cursor.closest_replica != NO_BROKER:
                cursor.closest_replica = NO_BROKER  # a follower may lag behind or be none any more: ask the leader
                if row is not errors.OFFSET_OUT_OF_RANGE and not is_found:
                    self._postpone(cursor, ApiError(row, f"{place}: {row.text}"), now)
            elif row is errors.OFFSET_OUT_OF_RANGE and wanted[place].last_fetched_epoch >= 0:
                # Perhaps it has the offset, and only does not know the epoch: it is asked for the offset alone.
                cursor.forget_epochs()
            elif row is errors.OFFSET_OUT_OF_RANGE:
                self._reset(cursor)
            elif not is_found:
                self._postpone(cursor, ApiError(row, f"{place}: {row.text}"), now)

    def _parts(self, answer: FetchResponse) -> Iterator[tuple[TopicPartition, FetchResponse.PartitionData]]:
        for topic in answer.responses:
            name = topic.topic or self._cluster.metadata.topic_name(topic.topic_id) or ""
            for part in topic.partitions:
                yield TopicPartition(name, part.partition_index), part

    def _add(self, cursor: Cursor, part: FetchResponse.PartitionData, leader_epoch: int, *, is_alone: bool) -> None:
        cursor.high_watermark = part.high_watermark
        cursor.last_stable_offset = part.last_stable_offset
        cursor.log_start_offset = part.log_start_offset
        records = part.records
        if not records:
            return
        assert isinstance(records, memoryview)
        aborted = [(entry.first_offset, entry.producer_id) for entry in part.aborted_transactions or ()]
        try:
            headers = [header for _, header in iterate(records)]
        except Malformed as error:
            cursor.error = error
        else:
            if headers:
                # No checksum covers the epoch of a batch; that it is not above the leader's is all that can be checked.
                epochs = [EpochStart(header.base_offset, min(header.leader_epoch, leader_epoch)) for header in headers]
                cursor.add(Chunk(records, Visibility(aborted)), next_offset=headers[-1].next_offset, epochs=epochs)
            elif is_alone:  # beside others it only had too little room left, and has its turn later
                place, offset = cursor.partition, cursor.fetch_offset
                cursor.error = RecordTooLarge(f"{place}: the batch at {offset} is above max.partition.fetch.bytes")
        self.news.set()

    # --- whether it is still the same log -------------------------------------------------------------------------

    def _doubt(self, cursor: Cursor, now: float) -> None:
        """A broker found other epochs in its log than we have read. A follower may only lag: the leader is asked."""
        cursor.valid_epoch = UNVALIDATED
        cursor.closest_replica = NO_BROKER
        cursor.not_before = now + max(self._cluster.backoff().next_ms(), PAUSE_MS_MIN) / 1000

    def _is_behind(self, cursor: Cursor) -> bool:
        """Records of a later epoch than the leader's were read: what we know of the leader is old.

        It is asked for again a few times. Then it is believed: perhaps the records were lost with all who had them.
        """
        place = cursor.partition
        if self._cluster.metadata.leader_epoch(place) >= cursor.epoch_before(cursor.fetch_offset):
            self._stale_looks.pop(place, None)
            return False
        self._stale_looks[place] = self._stale_looks.get(place, 0) + 1
        if self._stale_looks[place] <= STALE_LOOKS_MAX:
            return True
        del self._stale_looks[place]
        return False

    async def _validate(self, leader: int, cursors: dict[TopicPartition, Cursor]) -> None:
        loop = asyncio.get_running_loop()
        seeks = {place: cursor.seeks for place, cursor in cursors.items()}
        doubts = {
            place: Doubt(cursor.epoch_before(cursor.fetch_offset), self._cluster.metadata.leader_epoch(place))
            for place, cursor in cursors.items()
        }
        try:
            found: Mapping[TopicPartition, EpochEnd | BarnabasError]
            found = await ends_of_epochs(self._cluster, leader, doubts)
        except BarnabasError as error:
            found = dict.fromkeys(cursors, error)
        finally:
            for place in cursors:
                del self._validating[place]
            self.wake()
        for place, cursor in cursors.items():
            if cursor.seeks == seeks[place] and self._cursors.get(place) is cursor:
                self._judge(cursor, doubts[place], found[place], loop.time())

    def _judge(self, cursor: Cursor, doubt: Doubt, found: EpochEnd | BarnabasError, now: float) -> None:
        if isinstance(found, ApiError) and found.error is errors.UNSUPPORTED_VERSION:
            cursor.valid_epoch = doubt.current_leader_epoch  # nobody there can tell, as before Kafka 2.0
        elif isinstance(found, BarnabasError):
            self._postpone(cursor, found, now)
        elif found.is_known and found.offset >= cursor.position:
            cursor.confirm(doubt.current_leader_epoch, found)
        elif self._settings.auto_offset_reset == "none":
            divergent = found if found.is_known else (None, None)
            cursor.error = LogTruncated(cursor.partition, cursor.position, divergent[1], divergent[0])
            self.news.set()
        elif not found.is_known:
            self._reset(cursor)
        else:
            _log.warning(
                "records that were read are gone",
                partition=cursor.partition,
                position=cursor.position,
                now=found.offset,
            )
            cursor.seek(found.offset, found.epoch)
            cursor.valid_epoch = doubt.current_leader_epoch
            self.news.set()

    def _reset(self, cursor: Cursor) -> None:
        """The position is not in the log any more."""
        policy = self._settings.auto_offset_reset
        if policy == "none":
            cursor.error = OffsetGone(f"{cursor.partition}: offset {cursor.fetch_offset} is not in the log")
            self.news.set()
            return
        if cursor.partition not in self._resetting:
            task = asyncio.get_running_loop().create_task(self._restart(cursor, policy), name="reset")
            self._resetting[cursor.partition] = task

    async def _restart(self, cursor: Cursor, policy: str) -> None:
        place, seeks = cursor.partition, cursor.seeks
        try:
            starts = {place: EARLIEST if policy == "earliest" else LATEST}
            offsets = await resolve(self._cluster, starts, isolation_level=self._settings.isolation_level)
            if cursor.seeks == seeks:
                cursor.seek(offsets[place])
        except BarnabasError as error:
            cursor.error = error
        finally:
            del self._resetting[place]
            self.news.set()
            self.wake()
