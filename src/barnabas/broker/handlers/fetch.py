"""Fetch: read batches as they lie in the log, with incremental sessions and long polling.

Versions: 4–18 (13 and up name topics by id).
Behaviour: partitions are served in the client's order; the first one with data gives at least one whole batch even
above the limits. The answer waits for min_bytes or max_wait, and comes at once on an error or a divergence. Consumers
read what is committed, from version 11 on also at a follower; followers read to the end of the log, and their fetches
say how far they are. A request of a session ends the wait of the one before it.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from barnabas.broker.access.fetch_permissions import check_read
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.fetching.preferred_replica import preferred_replica
from barnabas.broker.fetching.sessions import NO_SESSION, Session, Wanted
from barnabas.broker.handlers.damage import as_api_error
from barnabas.broker.handlers.leadership import leader_of, node_endpoints
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Deferred, Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch
from barnabas.model.ids import NO_BROKER, Uuid
from barnabas.observe.traffic import Traffic
from barnabas.replication.partition import Partition
from barnabas.replication.pending import Readers
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timer

Row: TypeAlias = FetchResponse.PartitionData

FOLLOWERS_READABLE_SINCE: Final = 11
TOPIC_IDS_SINCE: Final = 13
LEADER_HINT_SINCE: Final = 16
READ_COMMITTED: Final = 1
CONSUMER: Final = -1  # replica id of an ordinary consumer
WAIT_MS_MAX: Final = 10 * 60 * 1000


def handle(request: Request, message: FetchRequest) -> FetchResponse | Deferred:
    uses_topic_ids = request.version >= TOPIC_IDS_SINCE
    is_follower = max(message.replica_id, message.replica_state.replica_id) != CONSUMER
    session, wanted, is_incremental = request.broker.fetch_sessions.open(
        message, uses_topic_ids=uses_topic_ids, is_follower=is_follower
    )
    if session is not None and is_incremental and request.asker is not None and not is_follower:
        session.look_everywhere()  # rights may have changed where nothing else has
    fetch = _Fetch(request, message, session, wanted, is_incremental=is_incremental)
    if not is_follower and not request.broker.fetch_turns.take():
        return fetch.queue()
    fetch.read()
    return fetch.response() if fetch.is_complete else fetch.wait()


class _Fetch:
    """One fetch under way: read once, and again whenever a partition has news, until there is enough."""

    def __init__(
        self,
        request: Request,
        message: FetchRequest,
        session: Session | None,
        wanted: list[Wanted],
        *,
        is_incremental: bool,
    ) -> None:
        self._request = request
        self._session = session
        self._wanted = wanted
        self._is_incremental = is_incremental
        self._replica_id = max(message.replica_id, message.replica_state.replica_id)
        self._replica_epoch = message.replica_state.replica_epoch
        self._is_follower = self._replica_id != CONSUMER
        self._is_heard = False  # whether the leaders know by now how far this follower is
        self._rack = message.rack_id if request.broker.settings.replication.is_rack_aware else ""
        self._is_committed_only = message.isolation_level == READ_COMMITTED
        self._size_bytes_min = message.min_bytes
        self._size_bytes_max = max(0, min(message.max_bytes, request.broker.settings.fetch_max_bytes))
        self._wait_ms = min(message.max_wait_ms, WAIT_MS_MAX)
        self._rows: list[Row] = []
        self._counted: list[tuple[Traffic, int]] = []  # for each row, whose counters it is, and its bytes
        self._got_bytes = 0
        self._is_urgent = False  # something is to be told at once
        self._watched: list[tuple[Readers, Callable[[], None]]] = []
        self._news: set[int] = set()  # the places in ``wanted`` of which something was heard since the last look
        self._moved: set[int] = set()  # leaders that the answer names
        self._throttled_bytes = 0
        self._is_queued = False
        self._is_satisfied = False
        self._deferred: Deferred | None = None
        self._timer: Timer | None = None

    @property
    def is_complete(self) -> bool:
        """Whether there is enough for an answer, or nothing that more could come from."""
        has_partitions = bool(self._wanted or (self._session is not None and self._session.wanted))
        return self._is_satisfied or self._wait_ms <= 0 or not has_partitions

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self) -> None:
        if self._session is not None and self._is_incremental:
            self._wanted = list(self._session.news)
        self._rows = []
        self._counted = []
        self._moved.clear()
        self._throttled_bytes = self._got_bytes = 0
        self._is_urgent = False
        for wanted in self._wanted:
            row, counted = self._look_at(wanted)
            self._rows.append(row)
            self._counted.append(counted)
        self._is_heard = True
        self._is_satisfied = self._is_urgent or self._got_bytes >= self._size_bytes_min

    def _read_news(self) -> None:
        """As ``read``, when there was nothing to read at all, and without those where nothing has happened since."""
        for place in sorted(self._news):
            self._rows[place], self._counted[place] = self._look_at(self._wanted[place])
        self._is_satisfied = self._is_urgent or self._got_bytes >= self._size_bytes_min

    def _look_at(self, wanted: Wanted) -> tuple[Row, tuple[Traffic, int]]:
        row = Row(partition_index=wanted.index, high_watermark=-1)
        partition: Partition | None = None
        wanted.is_settled = False
        size = 0
        try:
            partition = self._find(wanted)
            size = self._read_one(partition, wanted, row)
            if self._session is not None:
                # From here on: a follower that is heard may move the high watermark, and is told of that one already.
                wanted.watch(partition)
        except (ApiError, DiskFailure, CorruptBatch) as error:
            self._fail(row, wanted, as_api_error(error, partition))
            self._is_urgent = True
        if row.diverging_epoch.epoch >= 0 or row.preferred_read_replica != NO_BROKER:
            self._is_urgent = True
        self._got_bytes += size
        return row, (self._request.broker.observed.strays if partition is None else partition.traffic, size)

    def _find(self, wanted: Wanted) -> Partition:
        replicas = self._request.broker.replicas
        if self._request.asker is not None and self._replica_id == CONSUMER:
            check_read(self._request, self._request.asker, wanted)
        if self._request.version >= TOPIC_IDS_SINCE:
            partition = replicas.readable_by_id(wanted.topic_id, wanted.index)
        else:
            partition = replicas.readable(wanted.topic, wanted.index)
        if wanted.current_leader_epoch != partition.leader_epoch:
            partition.check_epoch(wanted.current_leader_epoch)
        if not partition.is_leader and (self._is_follower or self._request.version < FOLLOWERS_READABLE_SINCE):
            raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _read_one(self, partition: Partition, wanted: Wanted, row: Row) -> int:
        log = partition.log
        row.records = b""
        if self._rack and partition.is_leader and not self._is_follower:
            row.preferred_read_replica = preferred_replica(
                partition, self._request.broker.image.brokers, rack=self._rack, offset=wanted.fetch_offset
            )
        if row.preferred_read_replica == NO_BROKER:
            if wanted.last_fetched_epoch >= 0:
                self._check_history(partition, wanted, row)
            if self._is_follower and not self._is_heard and row.diverging_epoch.epoch < 0:
                self._hear(partition, wanted)
        row.high_watermark = log.high_watermark
        row.last_stable_offset = log.last_stable_offset
        row.log_start_offset = log.log_start_offset
        if row.preferred_read_replica != NO_BROKER or row.diverging_epoch.epoch >= 0:
            return 0
        if self._is_follower and partition.is_throttled_leader and self._is_held_back(partition):
            return 0
        if self._is_follower:
            end = log.end_offset
        elif self._is_committed_only:
            end = row.last_stable_offset
        else:
            end = row.high_watermark
            if wanted.fetch_offset == end >= row.log_start_offset:
                wanted.is_settled = True  # as with most who read along: there is nothing more
                return 0
        found = partition.read(
            wanted.fetch_offset,
            size_bytes_max=max(0, min(self._size_bytes_max - self._got_bytes, wanted.size_bytes_max)),
            end_offset_max=end,
            at_least_one=not self._got_bytes,
        )
        wanted.is_settled = wanted.fetch_offset >= end
        if self._is_committed_only:
            row.aborted_transactions = [
                FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(wanted.fetch_offset, found.next_offset_bound)
            ]
        if found.records is None:
            return 0
        row.records = found.records
        if self._is_follower and partition.is_throttled_leader:
            self._throttled_bytes += found.records.size_bytes
        return found.records.size_bytes

    def _is_held_back(self, partition: Partition) -> bool:
        """A follower that is not in sync waits when too much has been sent to such followers lately."""
        broker = self._request.broker
        return self._replica_id not in partition.isr and broker.replicas.leader_throttle.is_exceeded(
            broker.settings.replication.leader_bytes_per_second, broker.world.clock.monotonic_ms()
        )

    def _check_history(self, partition: Partition, wanted: Wanted, row: Row) -> None:
        """A reader whose history is not ours is told where the two part (KIP-595)."""
        log = partition.log
        epoch, end_offset = log.end_of_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or wanted.fetch_offset < log.log_start_offset:
            raise ApiError(errors.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            row.diverging_epoch = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)

    def _hear(self, partition: Partition, wanted: Wanted) -> None:
        """The offset that a follower asks for says what it has, if our log reaches so far."""
        follower = partition.follower(self._replica_id, is_epoch_known=wanted.current_leader_epoch >= 0)
        if partition.log.log_start_offset <= wanted.fetch_offset <= partition.log.end_offset:
            follower.presence = self._session
            if self._session is not None:
                wanted.follower = follower
            partition.fetched(
                follower,
                wanted.fetch_offset,
                log_start_offset=wanted.log_start_offset,
                broker_epoch=self._replica_epoch,
                now_ms=self._request.broker.world.clock.monotonic_ms(),
            )

    def _fail(self, row: Row, wanted: Wanted, error: ApiError) -> None:
        row.error_code = error.error.code
        row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
        row.records = b""
        is_moved = error.error in (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)
        if is_moved and self._request.version >= LEADER_HINT_SINCE:
            leader = leader_of(self._request, wanted.topic, wanted.topic_id, wanted.index)
            if leader is not None:
                row.current_leader = FetchResponse.LeaderIdAndEpoch(**leader._asdict())
                self._moved.add(leader.leader_id)

    # --- waiting --------------------------------------------------------------------------------------------------

    def queue(self) -> Deferred:
        """Begin when it is this fetch's turn."""
        deferred = self._defer()
        self._request.broker.fetch_turns.add(lambda: deferred.attempt(self._answer_or_wait))
        return deferred

    def _answer_or_wait(self) -> FetchResponse | None:
        self.read()
        if self.is_complete:
            return self.response()
        self.wait()
        return None

    def wait(self) -> Deferred:
        """Look again whenever one of the partitions has news; answer with what there is when the time is up."""
        deferred = self._deferred or self._defer()
        self._timer = self._request.broker.timers.after(self._wait_ms, self._finish)
        if self._session is not None:
            self._session.notify = self._on_news
        else:
            self._watch_all()
        return deferred

    def _defer(self) -> Deferred:
        self._deferred = self._request.defer()
        if self._session is not None:
            self._session.supersede = self._finish
        self._deferred.future.add_done_callback(self._on_done)
        return self._deferred

    def _watch_all(self) -> None:
        for place, wanted in enumerate(self._wanted):
            partition = self._request.broker.replicas.hosted(wanted.topic, wanted.topic_id, wanted.index)
            if partition is not None:
                readers = partition.followers_waiting if self._is_follower else partition.readers
                on_news = partial(self._on_news, place)
                readers.add(on_news)
                self._watched.append((readers, on_news))

    def _on_news(self, place: int | None = None) -> None:
        if place is not None:
            self._news.add(place)
        # Many partitions may have news in one turn of the loop; one look is enough for all of them.
        if not self._is_queued:
            self._is_queued = True
            if self._is_follower:
                asyncio.get_running_loop().call_soon(self._look_again)
            else:
                self._request.broker.fetch_turns.add(self._look_again)

    def _look_again(self) -> None:
        self._is_queued = False
        assert self._deferred is not None
        self._deferred.attempt(self._answer_if_satisfied)

    def _answer_if_satisfied(self) -> FetchResponse | None:
        if self._news and not self._got_bytes and not self._is_follower:
            self._read_news()
        else:
            self.read()
        self._news.clear()
        return self.response() if self._is_satisfied else None

    def _finish(self) -> None:
        assert self._deferred is not None
        self._deferred.attempt(self._last_answer)

    def _last_answer(self) -> FetchResponse:
        self.read()
        return self.response()

    def _on_done(self, _: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for readers, on_news in self._watched:
            readers.discard(on_news)
        self._watched.clear()
        if self._session is not None and self._session.supersede == self._finish:
            self._session.supersede = self._session.notify = None

    def _count(self) -> None:
        is_consumer = self._replica_id == CONSUMER
        for row, (traffic, size) in zip(self._rows, self._counted, strict=True):
            traffic.fetches += 1
            if row.error_code:
                traffic.failed_fetches += 1
            elif is_consumer:
                traffic.bytes_out += size
            else:
                traffic.replication_bytes_out += size

    # --- the answer -----------------------------------------------------------------------------------------------

    def response(self) -> FetchResponse:
        response = FetchResponse(session_id=self._session.id if self._session else NO_SESSION)
        topics: dict[tuple[str, Uuid], FetchResponse.FetchableTopicResponse] = {}
        for wanted, row in zip(self._wanted, self._rows, strict=True):
            is_news = wanted.is_news(row) if self._session else True
            if self._session is not None:
                self._session.told(wanted, is_served=bool(row.records))
            if self._is_incremental and not is_news:
                continue
            key = (wanted.topic, wanted.topic_id)
            topic = topics.get(key)
            if topic is None:
                topic = FetchResponse.FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id)
                topics[key] = topic
            topic.partitions.append(row)
        response.responses = list(topics.values())
        self._count()
        if self._throttled_bytes:
            self._request.broker.replicas.leader_throttle.record(self._throttled_bytes)
        if self._moved:
            response.node_endpoints = node_endpoints(self._request, self._moved, FetchResponse.NodeEndpoint)
        return response


def _needs(request: GuardedRequest, message: FetchRequest) -> None:
    """CLUSTER_ACTION for a follower; ``fetch_rights`` checks each partition of a consumer when it is read."""
    if message.replica_id != CONSUMER or message.replica_state.replica_id != CONSUMER:
        request.require_cluster(Operation.CLUSTER_ACTION)


API: Final = Api(ApiKey.FETCH, handle, at=CLIENT, needs=_needs)
