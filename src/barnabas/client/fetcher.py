"""Fetches ahead: at most one request per broker under way, over a fetch session, for the cursors that have room.

Chunks go into the cursors as they came; nothing is decoded here. The consumer wakes the fetcher when it has taken
records and waits for its news.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.consumer_settings import ConsumerSettings
from barnabas.client.cursor import Chunk, Cursor
from barnabas.client.errors import OffsetGone, RecordTooLarge
from barnabas.client.fetch_session import FetchSession, Plan, Wanted
from barnabas.client.isolation import Visibility
from barnabas.client.offsets import EARLIEST, ISOLATION_LEVELS, LATEST, resolve
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError, Malformed, error_of
from barnabas.model.ids import NO_BROKER, ZERO_UUID, TopicPartition
from barnabas.transport.versions import NO_LIMIT
from barnabas.wire.batch import iterate
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

PAUSE_MS_MIN: Final = 1  # whatever retry.backoff.ms says: a pause that is over at once is none
FETCH_LANE: Final = "fetch"  # a long poll would hold up whatever waits behind it on the same connection
NAMED_VERSION_MAX: Final = 12  # from 13 on Fetch speaks of topic ids
_SESSION_ERRORS: Final = frozenset(
    {errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH, errors.FETCH_SESSION_TOPIC_ID_ERROR}
)


class Fetcher:
    def __init__(self, cluster: Cluster, settings: ConsumerSettings, cursors: Mapping[TopicPartition, Cursor]) -> None:
        self._cluster = cluster
        self._settings = settings
        self._cursors = cursors
        self._sessions: dict[int, FetchSession] = {}
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._resetting: dict[TopicPartition, asyncio.Task[None]] = {}
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
                await self._look(looked_at)
                # A look may take longer than the pause that it has asked for: that time counts too, or nobody wakes us.
                waiting = [c.not_before for c in self._cursors.values() if c.not_before > looked_at]
                try:
                    async with asyncio.timeout_at(min(waiting, default=None)):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            for task in (*self._fetching.values(), *self._resetting.values()):
                task.cancel()

    async def _look(self, now: float) -> None:
        by_source: dict[int, dict[TopicPartition, Cursor]] = {}
        for place, cursor in list(self._cursors.items()):
            if cursor.wants_fetch(now) and place not in self._resetting:
                source = await self._source(cursor, now)
                if source is not None:
                    by_source.setdefault(source, {})[place] = cursor
        for source, cursors in sorted(by_source.items()):
            if source not in self._fetching:
                task = asyncio.get_running_loop().create_task(self._fetch(source, cursors), name=f"fetch:{source}")
                self._fetching[source] = task

    async def _source(self, cursor: Cursor, now: float) -> int | None:
        """The leader, or the replica that it has sent us to, for as long as metadata would count as fresh (KIP-392)."""
        try:
            await self._cluster.topic(cursor.partition.topic, timeout_ms=0)
        except BarnabasError as error:
            self._postpone(cursor, error, now)
            return None
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

    async def _fetch(self, source: int, cursors: dict[TopicPartition, Cursor]) -> None:
        loop = asyncio.get_running_loop()
        session = self._sessions.setdefault(source, FetchSession())
        seeks = {place: cursor.seeks for place, cursor in cursors.items()}
        try:
            plan = session.plan({place: self._wanted(cursor) for place, cursor in cursors.items()})
            is_named = any(want.topic_id == ZERO_UUID for want in plan.changed.values())
            answer = await self._cluster.call(
                source,
                self._request(plan),
                FetchResponse,
                lane=FETCH_LANE,
                timeout_ms=self._settings.request_timeout_ms + self._settings.fetch_max_wait_ms,
                version_max=NAMED_VERSION_MAX if is_named else NO_LIMIT,
            )
            row = error_of(answer.error_code)
            if row is not errors.NONE:
                raise ApiError(row)
            session.answered(answer.session_id)
            self._take(answer, cursors, seeks, loop.time())
        except BarnabasError as error:
            session.reset()
            if not (isinstance(error, ApiError) and error.error in _SESSION_ERRORS):
                for cursor in cursors.values():
                    self._postpone(cursor, error, loop.time())
                    cursor.closest_replica = NO_BROKER  # the leader is asked, who may know a better one
        finally:
            del self._fetching[source]
            self.wake()

    def _wanted(self, cursor: Cursor) -> Wanted:
        topic = self._cluster.metadata.topics[cursor.partition.topic]
        epoch = topic.partitions[cursor.partition.partition].leader_epoch
        return Wanted(topic.id, cursor.fetch_offset, epoch, self._settings.max_partition_fetch_bytes)

    def _request(self, plan: Plan) -> FetchRequest:
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for place, want in plan.changed.items():
            entry = topics.get(place.topic)
            if entry is None:
                entry = FetchRequest.FetchTopic(topic=place.topic, topic_id=want.topic_id, partitions=[])
                topics[place.topic] = entry
            entry.partitions.append(
                FetchRequest.FetchPartition(
                    partition=place.partition,
                    current_leader_epoch=want.leader_epoch,
                    fetch_offset=want.fetch_offset,
                    partition_max_bytes=want.size_bytes_max,
                )
            )
        forgotten: dict[str, FetchRequest.ForgottenTopic] = {}
        for place, topic_id in plan.forgotten.items():
            gone = forgotten.setdefault(
                place.topic, FetchRequest.ForgottenTopic(topic=place.topic, topic_id=topic_id, partitions=[])
            )
            gone.partitions.append(place.partition)
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._settings.fetch_max_wait_ms,
            min_bytes=self._settings.fetch_min_bytes,
            max_bytes=self._settings.fetch_max_bytes,
            isolation_level=ISOLATION_LEVELS[self._settings.isolation_level],
            session_id=plan.session_id,
            session_epoch=plan.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
            rack_id=self._settings.client_rack,
        )

    # --- what came ------------------------------------------------------------------------------------------------

    def _take(
        self,
        answer: FetchResponse,
        cursors: dict[TopicPartition, Cursor],
        seeks: dict[TopicPartition, int],
        now: float,
    ) -> None:
        filled = sum(1 for topic in answer.responses for part in topic.partitions if part.records)
        for topic in answer.responses:
            name = topic.topic or self._cluster.metadata.topic_name(topic.topic_id) or ""
            for part in topic.partitions:
                place = TopicPartition(name, part.partition_index)
                cursor = cursors.get(place)
                if cursor is None or cursor.seeks != seeks[place] or self._cursors.get(place) is not cursor:
                    continue
                row = error_of(part.error_code)
                if row is errors.NONE:
                    self._add(cursor, part, is_alone=filled == 1)
                    if part.preferred_read_replica != NO_BROKER:
                        cursor.closest_replica = part.preferred_read_replica
                        cursor.closest_until = now + self._settings.metadata_max_age_ms / 1000
                elif cursor.closest_replica != NO_BROKER:
                    cursor.closest_replica = NO_BROKER  # a follower may lag behind or be none any more: ask the leader
                    if row is not errors.OFFSET_OUT_OF_RANGE:
                        self._postpone(cursor, ApiError(row, f"{place}: {row.text}"), now)
                elif row is errors.OFFSET_OUT_OF_RANGE:
                    self._reset(cursor)
                else:
                    self._postpone(cursor, ApiError(row, f"{place}: {row.text}"), now)

    def _add(self, cursor: Cursor, part: FetchResponse.PartitionData, *, is_alone: bool) -> None:
        cursor.high_watermark = part.high_watermark
        cursor.last_stable_offset = part.last_stable_offset
        cursor.log_start_offset = part.log_start_offset
        records = part.records
        if not records:
            return
        assert isinstance(records, memoryview)
        aborted = [(entry.first_offset, entry.producer_id) for entry in part.aborted_transactions or ()]
        try:
            ends = [header.next_offset for _, header in iterate(records)]
        except Malformed as error:
            cursor.error = error
        else:
            if ends:
                cursor.add(Chunk(records, Visibility(aborted)), next_offset=ends[-1])
            elif is_alone:  # beside others it only had too little room left, and has its turn later
                place, offset = cursor.partition, cursor.fetch_offset
                cursor.error = RecordTooLarge(f"{place}: the batch at {offset} is above max.partition.fetch.bytes")
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
