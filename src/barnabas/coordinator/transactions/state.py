"""A transaction as its coordinator knows it: states, the transitions between them, and what each does to the epochs.

Everything here is a value; who may ask for which transition is decided in ``transactions``. From version 2 on
(KIP-890) every end of a transaction raises the producer's epoch, so that nothing which belongs to an ended transaction
can pass for a part of the next; version 1 keeps the epoch until the producer is initialised again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from barnabas.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

PRODUCER_EPOCH_MAX: Final = 2**15 - 1
EPOCH_EXHAUSTED_FROM: Final = PRODUCER_EPOCH_MAX - 1  # the last one is kept, so that fencing is always possible
EPOCH_BUMP_SINCE: Final = 2  # the version of transactions in which every end raises the epoch


class TransactionState(enum.IntEnum):
    """As the records number them and DescribeTransactions names them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return LABELS[self]


S = TransactionState

# From a state to those that may follow it. PrepareEpochFence is Kafka's name for fencing a producer whose transaction
# is ongoing; it is never written, because the fence and the abort are one step. Dead is the tombstone.
TRANSITIONS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    S.EMPTY: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.ONGOING: frozenset({S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.PREPARE_EPOCH_FENCE}),
    S.PREPARE_EPOCH_FENCE: frozenset({S.PREPARE_ABORT}),
    S.PREPARE_COMMIT: frozenset({S.COMPLETE_COMMIT}),
    S.PREPARE_ABORT: frozenset({S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.COMPLETE_ABORT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.DEAD: frozenset(),
}
LABELS: Final = {
    S.EMPTY: "Empty",
    S.ONGOING: "Ongoing",
    S.PREPARE_COMMIT: "PrepareCommit",
    S.PREPARE_ABORT: "PrepareAbort",
    S.COMPLETE_COMMIT: "CompleteCommit",
    S.COMPLETE_ABORT: "CompleteAbort",
    S.DEAD: "Dead",
    S.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
DECIDED: Final = (S.PREPARE_COMMIT, S.PREPARE_ABORT)  # the outcome is written; its markers are on their way


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transactional id: the producer it belongs to, and the transaction that producer is in or was in last."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID  # the producer id before the last transition
    next_producer_id: int = NO_PRODUCER_ID  # the one that follows when this transaction has ended
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = S.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    updated_ms: int
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= EPOCH_EXHAUSTED_FROM

    @property
    def is_decided(self) -> bool:
        return self.state in DECIDED

    @property
    def is_commit(self) -> bool:
        return self.state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)

    def is_timed_out(self, now_ms: int) -> bool:
        return self.state is S.ONGOING and self.started_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, *, expiration_ms: int) -> bool:
        return S.DEAD in TRANSITIONS[self.state] and self.updated_ms <= now_ms - expiration_ms

    # --- transitions ----------------------------------------------------------------------------------------------

    def with_epoch(self, epoch: int, *, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """The producer has been initialised: it begins without a transaction."""
        return self._to(
            S.EMPTY,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def with_producer_id(self, producer_id: int, *, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """The epochs have run out, so the producer goes on under another id."""
        return self._to(
            S.EMPTY,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )

    def with_partitions(self, partitions: frozenset[TopicPartition], *, version: int, now_ms: int) -> Transaction:
        is_new = self.state is not S.ONGOING
        return self._to(
            S.ONGOING,
            partitions=self.partitions | partitions,
            started_ms=now_ms if is_new else self.started_ms,
            updated_ms=now_ms,
            client_version=version,
        )

    def decided(
        self, state: TransactionState, *, version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transaction:
        """The outcome is settled. From version 2 on the markers carry an epoch above the transaction's own."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if version >= EPOCH_BUMP_SINCE:
            epoch, last_epoch = min(self.producer_epoch + 1, PRODUCER_EPOCH_MAX), self.producer_epoch
        return self._to(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            # A transaction may be aborted before it has touched any partition; then it began just now.
            started_ms=self.started_ms if self.state is S.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=version,
        )

    def fenced(self, *, version: int, now_ms: int, next_producer_id: int = NO_PRODUCER_ID) -> Transaction:
        """Abort an ongoing transaction and fence its producer, by the broker's own decision."""
        fence = self._to(S.PREPARE_EPOCH_FENCE)
        if version < EPOCH_BUMP_SINCE:
            # The decision itself raises no epoch in version 1, so the fence must.
            epoch = min(self.producer_epoch + 1, PRODUCER_EPOCH_MAX)
            fence = replace(fence, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
        prepared = fence.decided(S.PREPARE_ABORT, version=version, now_ms=now_ms, next_producer_id=next_producer_id)
        return replace(prepared, started_ms=self.started_ms)

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written."""
        state = S.COMPLETE_COMMIT if self.state is S.PREPARE_COMMIT else S.COMPLETE_ABORT
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.client_version >= EPOCH_BUMP_SINCE and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._to(
            state,
            producer_id=producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=epoch,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _to(self, state: TransactionState, **changes: object) -> Transaction:
        assert state in TRANSITIONS[self.state], f"{self.transactional_id}: {self.state.label} to {state.label}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)  # type: ignore[arg-type]
