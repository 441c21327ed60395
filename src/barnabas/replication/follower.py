"""A follower's decisions: what to ask its leader for, what an answer means, and where to cut a log that has diverged.

Nothing here reads a clock, a log or a socket: :mod:`barnabas.replication.fetcher` does, and carries out what is decided
here. Truncation follows KIP-595: the leader says with a fetch's answer where the histories part, so nobody has to ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from barnabas.model import errors
from barnabas.model.errors import Malformed, WireError, error_of
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, Uuid
from barnabas.storage.epochs import LeaderEpochs
from barnabas.wire.message import Records
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse

Key: TypeAlias = tuple[Uuid, int]

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class Asked(NamedTuple):
    """What a leader is told of one partition."""

    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    leader_epoch: int
    size_bytes_max: int


class Limits(NamedTuple):
    """replica.fetch.*: how much one answer may hold and how long it may wait."""

    response_bytes_max: int
    size_bytes_min: int
    wait_ms: int


class InFlight:
    """A request that is not answered yet, and how what was asked for has changed since it was sent."""

    __slots__ = ("before", "request")

    def __init__(self, request: FetchRequest) -> None:
        self.request = request
        self.before: dict[Key, Asked | None] = {}


class LeaderSession:
    """The follower's end of an incremental fetch session (KIP-227): the leader is told only what has changed."""

    def __init__(self, *, broker_id: int) -> None:
        self._broker_id = broker_id
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._broker_epoch = -1  # in which the leader was told of what is wanted
        self._wanted: dict[Key, Asked] = {}
        self._untold: dict[Key, None] = {}  # what the leader has not heard of yet
        self._forgotten: dict[Key, None] = {}  # what it still believes that we want
        self._in_flight: deque[InFlight] = deque()
        self._has_room = True  # whether the leader gave us a session when we last wanted one

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def is_open(self) -> bool:
        """Whether another request may follow before the last one is answered."""
        return self._epoch != INITIAL_EPOCH

    def want(self, key: Key, asked: Asked) -> None:
        """From the next request on."""
        before = self._wanted.get(key)
        if before != asked:
            self._note(key, before)
            self._wanted[key] = asked
            self._untold[key] = None
            self._forgotten.pop(key, None)

    def unwant(self, key: Key) -> None:
        before = self._wanted.pop(key, None)
        if before is not None:
            self._note(key, before)
            self._untold.pop(key, None)
            self._forgotten[key] = None

    def _note(self, key: Key, before: Asked | None) -> None:
        for sent in self._in_flight:
            sent.before.setdefault(key, before)

    def asked_in(self, sent: InFlight, key: Key) -> Asked | None:
        """What a request wanted of a partition; None if it did not."""
        return sent.before[key] if key in sent.before else self._wanted.get(key)

    def request(self, limits: Limits, *, broker_epoch: int) -> InFlight:
        """The next request; ``answered`` or ``failed`` must be told what came of it."""
        epoch = self._epoch
        is_first = epoch == INITIAL_EPOCH
        if not is_first:
            self._epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        # A broker that has registered anew says of every partition who asks for it now: the ISR is for its new epoch.
        is_whole = is_first or broker_epoch != self._broker_epoch
        self._broker_epoch = broker_epoch
        told = self._wanted if is_whole else {key: self._wanted[key] for key in self._untold}
        sent = InFlight(
            FetchRequest(
                replica_state=FetchRequest.ReplicaState(replica_id=self._broker_id, replica_epoch=broker_epoch),
                # The request that opens a session does not wait: once it is open, news can be sent at any time.
                max_wait_ms=0 if is_first and self._has_room else limits.wait_ms,
                min_bytes=limits.size_bytes_min,
                max_bytes=limits.response_bytes_max,
                session_id=self._id,
                session_epoch=epoch,
                topics=_topics(told.items()),
                forgotten_topics_data=[] if is_first else _forgotten(self._forgotten),
            )
        )
        self._untold.clear()
        self._forgotten.clear()
        self._in_flight.append(sent)
        return sent

    def answered(self, response: FetchResponse) -> WireError | None:
        """None if the rows of the answer count; otherwise why they do not, and the next request begins anew."""
        if response.error_code:
            error = error_of(response.error_code)
            if error is errors.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.failed()  # with the old id, so that the leader drops what it has
            return error
        self._has_room = response.session_id != NO_SESSION
        if not self._has_room:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        elif response.session_id != self._id or self._epoch == INITIAL_EPOCH:
            self._id, self._epoch = response.session_id, 1
        return None

    def taken(self) -> None:
        """The rows of the oldest answer have been dealt with."""
        self._in_flight.popleft()

    def failed(self) -> None:
        """No answer came, so nobody knows what the leader knows."""
        self._epoch = INITIAL_EPOCH
        self._in_flight.clear()


def _topics(told: Iterable[tuple[Key, Asked]]) -> list[FetchRequest.FetchTopic]:
    topics: dict[Uuid, FetchRequest.FetchTopic] = {}
    for (topic_id, index), asked in told:
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = FetchRequest.FetchTopic(topic_id=topic_id)
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=index,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=asked.size_bytes_max,
            )
        )
    return list(topics.values())


def _forgotten(keys: Iterable[Key]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[Uuid, FetchRequest.ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, FetchRequest.ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())


# --- what an answer means ---------------------------------------------------------------------------------------------


class Append(NamedTuple):
    """Write what came, if anything; then the leader's high watermark and log start are known too."""

    records: Records
    high_watermark: int
    log_start_offset: int


class Diverged(NamedTuple):
    """The leader's history of this epoch ends before ours does."""

    epoch: int
    end_offset: int


class Locate(NamedTuple):
    """The leader does not have the offset: ask where its log starts and ends."""


class Pause(NamedTuple):
    """Come back a little later: one of us is behind with the metadata, or the leader's disk is in trouble."""

    error: WireError


class Park(NamedTuple):
    """Leave the partition until the metadata says something new of it."""

    error: WireError


Reaction: TypeAlias = Append | Diverged | Locate | Pause | Park


def react(row: FetchResponse.PartitionData) -> Reaction:
    if not row.error_code:
        diverging = row.diverging_epoch
        if diverging.end_offset != NO_OFFSET:
            return Diverged(diverging.epoch, diverging.end_offset)
        return Append(row.records or b"", row.high_watermark, row.log_start_offset)
    error = error_of(row.error_code)
    if error is errors.OFFSET_OUT_OF_RANGE:
        return Locate()
    if error is errors.FENCED_LEADER_EPOCH:
        # The leader knows of a later epoch; to ask in this one again is of no use.
        return Park(error)
    return Pause(error)


def only_row(answer: ListOffsetsResponse) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
    """What a leader says that was asked about one partition."""
    rows = [row for topic in answer.topics for row in topic.partitions]
    if len(rows) != 1:
        raise Malformed(f"the leader answers about {len(rows)} partitions, and was asked about one")
    return rows[0]


def truncation_offset(epochs: LeaderEpochs, end_offset: int, diverged: Diverged) -> int:
    """Where to cut a log that ends at ``end_offset``, given where the leader's history parts from it.

    If the leader names an epoch that this log never saw, the cut is made where the last epoch before it ends here; the
    next fetch names that epoch, and the leader says whether more must go.
    """
    if diverged.epoch == NO_LEADER_EPOCH:
        return min(diverged.end_offset, end_offset)
    epoch, epoch_end = epochs.end_of(diverged.epoch, end_offset=end_offset)
    if epoch_end == NO_OFFSET:
        return min(diverged.end_offset, end_offset)
    if epoch != diverged.epoch:
        return min(epoch_end, end_offset)
    return min(epoch_end, diverged.end_offset, end_offset)


class StartOver(NamedTuple):
    """Drop everything and begin where the leader begins."""

    offset: int


class CutTo(NamedTuple):
    offset: int


class GoOn(NamedTuple):
    offset: int


def relocate(end_offset: int, *, leader_start: int, leader_end: int) -> StartOver | CutTo | GoOn:
    """What to do with a log that ends at an offset which the leader does not have."""
    if leader_end < end_offset:
        # Only after an unclean election: what lies above was never committed, or is lost.
        return CutTo(leader_end)
    if leader_start > end_offset:
        return StartOver(leader_start)
    return GoOn(end_offset)
