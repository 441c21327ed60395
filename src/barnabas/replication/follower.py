"""A follower's decisions: what to ask its leader for, what an answer means, and where to cut a log that has diverged.

Nothing here reads a clock, a log or a socket: :mod:`barnabas.replication.fetcher` does, and carries out what is decided
here. Truncation follows KIP-595: the leader says with a fetch's answer where the histories part, so nobody has to ask.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeAlias

from barnabas.model import errors
from barnabas.model.errors import Malformed, WireError, error_of
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, Uuid
from barnabas.storage.epochs import LeaderEpochs
from barnabas.wire.fetch_session import INITIAL_EPOCH, FetchSession, Key, Wanted
from barnabas.wire.message import Records
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse


def key_of(topic_id: Uuid, partition: int) -> Key:
    """The partition in a fetch session; between brokers only the ids of topics are used."""
    return "", topic_id, partition


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
        self.before: dict[Key, Wanted | None] = {}


class LeaderSession(FetchSession):
    """The fetch session of a follower. It remembers what each request under way asked for, since that may change."""

    __slots__ = ("_broker_epoch", "_broker_id", "_in_flight")

    def __init__(self, *, broker_id: int) -> None:
        super().__init__()
        self._broker_id = broker_id
        self._broker_epoch = -1  # the one of the last request
        self._in_flight: deque[InFlight] = deque()

    def want(self, key: Key, wanted: Wanted) -> None:
        before = self._wanted.get(key)
        if before != wanted:
            for sent in self._in_flight:
                sent.before.setdefault(key, before)
            self._set(key, wanted)

    def unwant(self, key: Key) -> None:
        before = self._wanted.get(key)
        if before is not None:
            for sent in self._in_flight:
                sent.before.setdefault(key, before)
            self._remove(key)

    def asked_in(self, sent: InFlight, key: Key) -> Wanted | None:
        """Return what a request asked for of a partition; None if it did not name it."""
        return sent.before[key] if key in sent.before else self._wanted.get(key)

    def request(self, limits: Limits, *, broker_epoch: int) -> InFlight:
        """Return the next request; ``answered`` or ``failed`` must be called with its result."""
        # A broker that has registered anew names every partition again: the ISR is for its new epoch.
        plan = self.plan(is_full=broker_epoch != self._broker_epoch)
        self._broker_epoch = broker_epoch
        is_first = plan.epoch == INITIAL_EPOCH
        sent = InFlight(
            FetchRequest(
                replica_state=FetchRequest.ReplicaState(replica_id=self._broker_id, replica_epoch=broker_epoch),
                # The request that opens a session does not wait: once it is open, changes can be sent at any time.
                max_wait_ms=0 if is_first and self._is_granted else limits.wait_ms,
                min_bytes=limits.size_bytes_min,
                max_bytes=limits.response_bytes_max,
                session_id=plan.session_id,
                session_epoch=plan.epoch,
                topics=plan.topics(),
                forgotten_topics_data=plan.forgotten_topics(),
            )
        )
        self._in_flight.append(sent)
        return sent

    def taken(self) -> None:
        """The partitions of the oldest response have been processed."""
        self._in_flight.popleft()

    def failed(self) -> None:
        super().failed()
        self._in_flight.clear()


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
