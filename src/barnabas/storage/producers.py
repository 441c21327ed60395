"""What a log knows of the producers that number their batches: epochs, sequences, open transactions.

``check`` raises what Kafka answers, or hands back the batch a duplicate repeats; ``append`` and ``end`` take over what
was written. Checking and taking over are two steps, because the write between them may fail. Where the table is kept
between runs is ``producer_snapshot``'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from barnabas.storage.transactions import CompletedTransaction, Marker
from barnabas.wire.batch import TRANSACTIONAL, BatchHeader

DUPLICATE_WINDOW_BATCHES: Final = 5
SEQUENCE_MASK: Final = 2**31 - 1  # sequences wrap from 2^31 - 1 to 0
PRODUCER_EPOCH_MAX: Final = 2**15 - 1
TRANSACTIONS_V2: Final = 2


class AppendedBatch(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class Producer:
    """One producer id: its epoch, its last batches in that epoch, its open transaction if there is one."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "ended_count",
        "epoch",
        "last_sequence",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.transaction_first_offset = NO_OFFSET
        self.last_sequence = NO_SEQUENCE  # of the last batch in this epoch
        self.ended_count = 0  # transactions that were ended here since the log was opened
        self.batches: deque[AppendedBatch] = deque(maxlen=DUPLICATE_WINDOW_BATCHES)

    def move_to_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.batches.clear()
            self.last_sequence = NO_SEQUENCE
            self.epoch = epoch


class Producers:
    def __init__(self) -> None:
        self.by_id: dict[int, Producer] = {}
        # Both by first offset, which only rises, so that the first entry is the lowest.
        self._ongoing: dict[int, int] = {}  # first offset -> producer id
        self.unreplicated: dict[int, int] = {}  # decided, but the marker at this offset is not below the HW yet

    def load(self, producers: Iterable[Producer]) -> None:
        """Begin with what a snapshot held."""
        self.by_id = {producer.producer_id: producer for producer in producers}
        self.unreplicated = {}
        self._ongoing = {
            producer.transaction_first_offset: producer.producer_id
            for producer in sorted(self.by_id.values(), key=lambda each: each.transaction_first_offset)
            if producer.transaction_first_offset >= 0
        }

    def is_late(self, *, now_ms: int, late_ms: int) -> bool:
        """Whether the first open transaction has written nothing for longer than that."""
        first = next(iter(self._ongoing.values()), None)
        return first is not None and now_ms - self.by_id[first].last_timestamp > late_ms

    # --- data -----------------------------------------------------------------------------------------------------

    def check(
        self, header: BatchHeader, *, is_client: bool = True, transaction_version: int = 0
    ) -> AppendedBatch | None:
        """May this data batch be appended? The batch it repeats, if it is a duplicate; ApiError if it may not."""
        _, _, _, _, _, attributes, delta, _, _, producer_id, epoch, sequence, _ = header
        producer = self.by_id.get(producer_id)
        is_transactional = attributes & TRANSACTIONAL
        if (
            transaction_version >= TRANSACTIONS_V2
            and is_client
            and is_transactional
            and sequence != 0
            and (producer is None or not producer.batches)
        ):
            raise _out_of_order(header, "a transaction's first batch")
        if producer is None:
            return None
        if epoch < producer.epoch:
            raise ApiError(
                errors.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} wrote with epoch {epoch} after {producer.epoch}",
            )
        if is_client:
            if epoch != producer.epoch:
                if sequence != 0:
                    raise _out_of_order(header, f"the first batch after epoch {producer.epoch}")
            elif sequence != (producer.last_sequence + 1) & SEQUENCE_MASK:
                last_sequence = (sequence + delta) & SEQUENCE_MASK
                for batch in producer.batches:
                    if batch.last_sequence == last_sequence and batch.first_sequence == sequence:
                        return batch
                raise _out_of_order(header, f"the batch after sequence {producer.last_sequence}")
        if producer.transaction_first_offset >= 0 and not is_transactional:
            raise ApiError(
                errors.INVALID_TXN_STATE,
                f"producer {producer_id} wrote outside of the transaction it has open",
            )
        return None

    def append(self, header: BatchHeader, base_offset: int) -> None:
        """A data batch of this producer has been written at this offset."""
        _, _, _, _, _, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, _ = header
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self.by_id[producer_id] = Producer(producer_id)
        if producer.epoch != epoch:
            producer.move_to_epoch(epoch)
        last_sequence = (sequence + delta) & SEQUENCE_MASK if sequence >= 0 else NO_SEQUENCE
        producer.batches.append(AppendedBatch(last_sequence, base_offset + delta, delta, max_timestamp))
        producer.last_sequence = last_sequence
        producer.last_timestamp = max_timestamp
        if attributes & TRANSACTIONAL and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    # --- markers --------------------------------------------------------------------------------------------------

    def check_marker(self, header: BatchHeader, marker: Marker, *, transaction_version: int = 0) -> None:
        """May this marker be appended? From transactions v2 on each carries an epoch of its own (KIP-1228)."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return
        epoch = header.producer_epoch
        if epoch < producer.epoch or (epoch == producer.epoch and transaction_version >= TRANSACTIONS_V2):
            # The same marker again, after its transaction has ended, is a retry of the coordinator's.
            is_retry = epoch == producer.epoch and (
                producer.transaction_first_offset < 0 or epoch == PRODUCER_EPOCH_MAX
            )
            if not is_retry:
                raise ApiError(
                    errors.INVALID_PRODUCER_EPOCH,
                    f"the marker of producer {header.producer_id} has epoch {epoch}, the producer {producer.epoch}",
                )
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                errors.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {marker.coordinator_epoch} wrote a marker after {producer.coordinator_epoch}",
            )

    def end(self, header: BatchHeader, marker: Marker, offset: int) -> CompletedTransaction | None:
        """A marker has been written at this offset; None if no transaction was open here."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            producer = self.by_id[header.producer_id] = Producer(header.producer_id)
        first_offset = producer.transaction_first_offset
        producer.move_to_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        producer.transaction_first_offset = NO_OFFSET
        producer.ended_count += 1
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        self.unreplicated[first_offset] = offset
        return CompletedTransaction(header.producer_id, first_offset, offset, marker.is_abort)

    # --- what is not decided yet ----------------------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int:
        """The first offset whose fate readers cannot know yet, or −1."""
        if not self._ongoing and not self.unreplicated:
            return NO_OFFSET
        return min(*self._ongoing, *self.unreplicated) if self._ongoing and self.unreplicated else self._lowest()

    def _lowest(self) -> int:
        return next(iter(self._ongoing)) if self._ongoing else min(self.unreplicated)

    @property
    def first_undecided_offset(self) -> int:
        """The first offset of the oldest open transaction, or −1."""
        return next(iter(self._ongoing), NO_OFFSET)

    def has_open_transaction(self, producer_id: int, epoch: int | None = None) -> bool:
        producer = self.by_id.get(producer_id)
        if producer is None or producer.transaction_first_offset < 0:
            return False
        return epoch is None or producer.epoch == epoch

    def ended_count(self, producer_id: int) -> int:
        """How many of a producer's transactions were ended here: whoever asks twice learns whether one was between."""
        producer = self.by_id.get(producer_id)
        return 0 if producer is None else producer.ended_count

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Decisions whose markers are replicated hold nothing back any more."""
        self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= high_watermark}

    def expire(self, now_ms: int, *, expiration_ms: int) -> int:
        """Forget the producers that have been idle for so long; one with an open transaction never is."""
        idle = [
            producer.producer_id
            for producer in self.by_id.values()
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        return len(idle)

    def clear(self) -> None:
        self.by_id.clear()
        self._ongoing.clear()
        self.unreplicated.clear()


def _out_of_order(header: BatchHeader, expected: str) -> ApiError:
    return ApiError(
        errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {header.base_sequence} of producer {header.producer_id} is not that of {expected}",
    )
