"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changed.

The cache is bounded; when it is full a session that has been idle long enough makes room, else the client gets
none and goes on with full fetches. What a partition answers is the fetch handler's; this module remembers what each
client asked for, what it was last told, and which partitions have had news since: a fetch of a thousand partitions
costs what the busy ones among them cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.replication.isr import Follower
from barnabas.replication.partition import Partition
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.world.clock import Clock
from barnabas.world.entropy import Entropy

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0  # a full fetch that would like a session
FINAL_EPOCH: Final = -1  # a full fetch that wants none, and ends the one it names
EVICTION_MS_MIN: Final = 120_000
SESSION_ID_MAX: Final = 2**31 - 1


class Wanted:
    """One partition of a session: what the client wants of it and what it was last told."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower",
        "high_watermark",
        "index",
        "is_settled",
        "last_fetched_epoch",
        "last_stable_offset",
        "log_start_offset",
        "session",
        "size_bytes_max",
        "told_log_start_offset",
        "topic",
        "topic_id",
        "watched",
    )

    def __init__(self, topic: str, topic_id: Uuid, asked: FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = asked.partition
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.told_log_start_offset = -1
        self.session: Session | None = None
        self.watched: Partition | None = None
        self.follower: Follower | None = None  # whose fetches these are, where the partition is led here
        self.is_settled = False  # the client has all there is, as far as the last look showed
        self.update(asked)

    @property
    def key(self) -> tuple[str, Uuid, int]:
        return self.topic, self.topic_id, self.index

    def update(self, asked: FetchRequest.FetchPartition) -> None:
        self.fetch_offset = asked.fetch_offset
        self.size_bytes_max = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.log_start_offset = asked.log_start_offset  # of a follower

    def is_news(self, answer: FetchResponse.PartitionData) -> bool:
        """Whether an incremental answer must mention the partition; remembers what was told."""
        is_news = bool(
            answer.records
            or answer.error_code
            or answer.high_watermark != self.high_watermark
            or answer.last_stable_offset != self.last_stable_offset
            or answer.log_start_offset != self.told_log_start_offset
            or answer.preferred_read_replica != -1
            or answer.diverging_epoch.epoch != -1
        )
        self.high_watermark = answer.high_watermark
        self.last_stable_offset = answer.last_stable_offset
        self.told_log_start_offset = answer.log_start_offset
        if answer.error_code:
            self.high_watermark = -1  # an error is told again and again until it is gone
        return is_news

    # --- news of the partition, while this belongs to a session ---

    def watch(self, partition: Partition) -> None:
        """Hear of the next news, once: whoever never comes back for them costs the partition nothing after that."""
        if self.watched is not None and self.watched is not partition:
            self.unwatch()
        self.watched = partition
        assert self.session is not None
        if self.session.is_follower:
            partition.followers_waiting.add(self._on_news)
            partition.readers.add(self._on_high_watermark)
        else:
            partition.readers.add(self._on_news)

    def unwatch(self) -> None:
        self._unregister()
        self.watched = None
        if self.follower is not None:
            self.follower.leave(self.session)
            self.follower = None

    def _unregister(self) -> None:
        if self.watched is not None:
            self.watched.followers_waiting.discard(self._on_news)
            self.watched.readers.discard(self._on_high_watermark)
            self.watched.readers.discard(self._on_news)

    def _on_news(self) -> None:
        assert self.session is not None
        self.session.news[self] = None
        self._unregister()
        if self.session.notify is not None:
            self.session.notify()

    def _on_high_watermark(self) -> None:
        """For a follower this is to be told with the next answer, but no reason to answer."""
        assert self.session is not None
        self.session.news[self] = None
        if self.watched is not None:
            self.watched.readers.discard(self._on_high_watermark)


class Session:
    """What one client wants, and where it may find something new."""

    __slots__ = (
        "epoch",
        "id",
        "is_follower",
        "news",
        "notify",
        "previous_ms",
        "supersede",
        "used_ms",
        "uses_topic_ids",
        "wanted",
    )

    def __init__(
        self,
        session_id: int,
        wanted: dict[tuple[str, Uuid, int], Wanted],
        *,
        uses_topic_ids: bool,
        is_follower: bool = False,
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.wanted = wanted
        self.uses_topic_ids = uses_topic_ids
        self.is_follower = is_follower
        self.supersede: Callable[[], None] | None = None  # answers the request that waits, if there is one
        self.notify: Callable[[], None] | None = None  # tells that request of news
        self.used_ms = 0  # when the last request came
        self.previous_ms = 0  # and the one before it
        # Partitions that must be looked at for the next answer, in the order in which they are served.
        self.news: dict[Wanted, None] = dict.fromkeys(wanted.values())
        for item in wanted.values():
            item.session = self

    def add(self, wanted: Wanted) -> None:
        wanted.session = self
        self.wanted[wanted.key] = wanted
        self.news[wanted] = None

    def remove(self, key: tuple[str, Uuid, int]) -> None:
        wanted = self.wanted.pop(key, None)
        if wanted is not None:
            wanted.unwatch()
            self.news.pop(wanted, None)

    def look_everywhere(self) -> None:
        """As if all partitions had news."""
        self.news = dict.fromkeys((*self.news, *self.wanted.values()))

    def told(self, wanted: Wanted, *, is_served: bool) -> None:
        """A partition was in an answer, or had nothing for it. What gave data goes behind those that wait for it."""
        if wanted.is_settled:
            self.news.pop(wanted, None)
        elif is_served and wanted in self.news:
            del self.news[wanted]
            self.news[wanted] = None

    def close(self) -> None:
        for wanted in self.wanted.values():
            wanted.unwatch()


class FetchSessions:
    def __init__(self, clock: Clock, entropy: Entropy, *, sessions_max: int) -> None:
        self._clock = clock
        self._entropy = entropy
        self._sessions_max = sessions_max
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, request: FetchRequest, *, uses_topic_ids: bool, is_follower: bool = False
    ) -> tuple[Session | None, list[Wanted], bool]:
        """The session of a request (None without one), what to fetch, and whether the answer is incremental."""
        known = self._sessions.get(request.session_id)
        if known is not None and known.supersede is not None:
            # Answers go out in the order of the requests: this one would wait for the one before it.
            known.supersede()
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._drop(request.session_id)
            wanted = {item.key: item for item in _wanted(request)}
            session = None
            if request.session_epoch == INITIAL_EPOCH and wanted:
                session = self._create(wanted, uses_topic_ids=uses_topic_ids, is_follower=is_follower)
            return session, list(wanted.values()), False
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(errors.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise ApiError(errors.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise ApiError(errors.FETCH_SESSION_TOPIC_ID_ERROR)
        self._update(session, request)
        session.previous_ms, session.used_ms = session.used_ms, self._clock.monotonic_ms()
        session.epoch = 1 if session.epoch == SESSION_ID_MAX else session.epoch + 1
        return session, list(session.news), True

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _update(self, session: Session, request: FetchRequest) -> None:
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                session.remove((gone.topic, gone.topic_id, index))
        for topic in request.topics:
            for asked in topic.partitions:
                key = (topic.topic, topic.topic_id, asked.partition)
                known = session.wanted.get(key)
                if known is None:
                    session.add(Wanted(topic.topic, topic.topic_id, asked))
                else:
                    known.update(asked)
                    session.news[known] = None
                    if session.is_follower:
                        # It may have dropped the last answer, as when its leader epoch changed meanwhile; what that
                        # said is said again, or its high watermark would stay behind until the next record.
                        known.high_watermark = -1

    def _create(
        self, wanted: dict[tuple[str, Uuid, int], Wanted], *, uses_topic_ids: bool, is_follower: bool
    ) -> Session | None:
        now_ms = self._clock.monotonic_ms()
        if len(self._sessions) >= self._sessions_max and not self._make_room(now_ms, is_follower=is_follower):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._entropy.below(SESSION_ID_MAX)
        session = Session(session_id, wanted, uses_topic_ids=uses_topic_ids, is_follower=is_follower)
        session.used_ms = session.previous_ms = now_ms
        self._sessions[session_id] = session
        return session

    def _make_room(self, now_ms: int, *, is_follower: bool) -> bool:
        """Drop the session that was used least recently, if it is idle, or a consumer's and a follower needs room."""
        consumers = [session for session in self._sessions.values() if not session.is_follower]
        pool = consumers if is_follower and consumers else self._sessions.values()
        oldest = min(pool, key=lambda session: session.used_ms, default=None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms < EVICTION_MS_MIN and not (is_follower and not oldest.is_follower):
            return False
        self._drop(oldest.id)
        return True


def _wanted(request: FetchRequest) -> Iterable[Wanted]:
    for topic in request.topics:
        for asked in topic.partitions:
            yield Wanted(topic.topic, topic.topic_id or ZERO_UUID, asked)
