"""The vocabulary of share-partitions: states of records, acknowledgements, ranges of offsets, and limits."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.coordinator.share_state.batches import StateBatch


class RecordState(enum.IntEnum):
    """The delivery state of a record, with the numbers of the share coordinator's records."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self >= RecordState.ACKNOWLEDGED


class Acknowledge(enum.IntEnum):
    """What a member says about a record, with the numbers of the wire."""

    GAP = 0  # there is no record at this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: Final = {
    Acknowledge.GAP: RecordState.ARCHIVED,
    Acknowledge.ACCEPT: RecordState.ACKNOWLEDGED,
    Acknowledge.RELEASE: RecordState.AVAILABLE,
    Acknowledge.REJECT: RecordState.ARCHIVED,
}


class Limits(NamedTuple):
    """The configuration of a group, as far as its share-partitions use it."""

    lock_ms: int = 30_000
    deliveries_max: int = 5
    locks_max: int = 2_000
    is_renewable: bool = True


class LogBatch(NamedTuple):
    """The offsets of a batch in the log. Batches of markers and of aborted transactions are not delivered."""

    first: int
    last: int
    is_delivered: bool = True


class Acquired(NamedTuple):
    first: int
    last: int
    delivery_count: int


class Acknowledgement(NamedTuple):
    """Acknowledge types for the offsets of a range: one for all of them, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Range:
    """Neighbouring offsets with the same state. A state change that is being written down is ``pending``."""

    __slots__ = ("delivery_count", "due_ms", "first", "last", "member_id", "pending", "state")

    def __init__(self, first: int, last: int, state: RecordState, delivery_count: int = 0) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = ""  # member that has acquired the records
        self.due_ms = 0  # end of the lock of acquired records; available records are not delivered before it
        self.pending: RecordState | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        pending = "" if self.pending is None else f"->{self.pending.name}"
        return f"<{self.first}-{self.last} {self.state.name}{pending} {self.delivery_count} {self.member_id}>"

    def is_like(self, other: Range) -> bool:
        return (
            self.pending is None
            and other.pending is None
            and self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.due_ms == other.due_ms
        )

    def tail(self, first: int) -> Range:
        """Cut the range before an offset and return the rest."""
        rest = Range(first, self.last, self.state, self.delivery_count)
        rest.member_id, rest.due_ms, rest.pending = self.member_id, self.due_ms, self.pending
        self.last = first - 1
        return rest

    def release(self, deliveries_max: int) -> RecordState:
        """The state after a delivery that was not acknowledged: available again, or archived after too many."""
        return RecordState.AVAILABLE if self.delivery_count < deliveries_max else RecordState.ARCHIVED

    def batch(self, state: RecordState) -> StateBatch:
        return StateBatch(self.first, self.last, int(state), self.delivery_count)
