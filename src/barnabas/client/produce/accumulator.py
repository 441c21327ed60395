"""Records become batches here, one queue for each partition, in bounded memory.

Pure but for the futures inside the batches: time is an argument, nothing is sent. The producer appends, the sender
takes what may go, settles it or gives it back; the rules that keep a partition's order are all in this module.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.client.errors import LostSequence, TimedOut
from barnabas.client.produce.batch import Appended, Batch, BatchContent, Delivery, Headers, Identity, size_of
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition

SEQUENCE_MASK: Final = 0x7FFFFFFF  # sequence numbers wrap to 0 after 2^31 - 1


class PartitionQueue:
    """The batches of one partition: waiting, in flight, and those that must go again before anything else.

    Rule 1: batches are numbered in the order in which they first leave.
    Rule 2: while one must go again nothing newer leaves, and it leaves alone: the broker sees the sequence whole.
    Rule 3: the first batch of a sequence leaves alone. A broker that knows nothing of a producer takes any number as
    the first: were the first batch refused and the second not (by a topic in the making), they would change places.
    Rule 4: after a gap that nothing can fill the queue takes a new identity, once nothing is in flight.
    """

    __slots__ = (
        "identity",
        "in_flight",
        "is_known",
        "needs_identity",
        "next_sequence",
        "not_before",
        "partition",
        "retries",
        "waiting",
    )

    def __init__(self, partition: TopicPartition, *, is_idempotent: bool) -> None:
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.retries: list[Batch] = []
        self.identity = Identity()
        self.next_sequence = 0
        self.needs_identity = is_idempotent
        self.is_known = not is_idempotent  # the broker has a batch of this sequence
        self.not_before = 0.0

    @property
    def is_empty(self) -> bool:
        return not (self.waiting or self.in_flight or self.retries)

    def sendable_at(self, *, linger: float, is_flushing: bool, batch_bytes: int) -> float | None:
        """When the next batch may leave; None if that depends on something else than time."""
        if self.retries or self.needs_identity:
            if self.in_flight or not (self.retries or self.waiting):
                return None
            return self.not_before
        if not self.waiting or (self.in_flight and not self.is_known):
            return None
        first = self.waiting[0]
        if is_flushing or len(self.waiting) > 1 or first.size_bytes >= batch_bytes or first.attempts:
            return self.not_before
        return max(self.not_before, first.opened_at + linger)

    def take(self) -> Batch:
        """The next batch, numbered, now in flight."""
        if self.retries:
            batch = self.retries.pop(0)
        else:
            batch = self.waiting.popleft()
            batch.close()
            if self.identity.producer_id != NO_PRODUCER_ID:
                batch.number(self.identity, self.next_sequence)
                self.next_sequence = (self.next_sequence + len(batch.records)) & SEQUENCE_MASK
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def give_back(self, batch: Batch, *, not_before: float) -> None:
        """It must go again, before all that are newer."""
        self.in_flight.remove(batch)
        insort(self.retries, batch, key=_rank)
        self.not_before = max(self.not_before, not_before)

    def replace(self, batch: Batch, halves: tuple[Batch, Batch]) -> None:
        self.in_flight.remove(batch)
        for half in halves:
            insort(self.retries, half, key=_rank)

    def settle(self, batch: Batch, *, is_written: bool) -> None:
        """It is done with. If it was not written, the sequence has a gap, unless it was the last one of it."""
        self.in_flight.remove(batch)
        if is_written:
            self.is_known = self.is_known or batch.identity == self.identity
            return
        if batch.base_sequence == NO_SEQUENCE:
            return
        is_last = not (self.in_flight or self.retries)
        if is_last and not batch.is_doubtful and batch.identity == self.identity:
            self.next_sequence = batch.base_sequence
        else:
            self.needs_identity = True

    def is_first(self, batch: Batch) -> bool:
        """Nothing older is unsettled."""
        return all(other.rank >= batch.rank for other in (*self.in_flight, *self.retries))

    def adopt(self, identity: Identity) -> list[Batch]:
        """Start a new sequence. Answers with the batches that cannot be part of it: they may be written already."""
        assert not self.in_flight
        lost = [batch for batch in self.retries if batch.is_doubtful]
        kept = [batch for batch in self.retries if not batch.is_doubtful]
        for batch in kept:
            batch.number(Identity(), NO_SEQUENCE)
        self.waiting.extendleft(reversed(kept))
        self.retries.clear()
        self.identity, self.next_sequence, self.needs_identity = identity, 0, False
        self.is_known = False
        return lost

    def expired(self, now: float) -> list[Batch]:
        """Batches whose time is up; those in flight get an answer first."""
        if not self.retries and (not self.waiting or self.waiting[0].deadline > now):
            return []  # they wait in the order in which they came
        gone = [batch for batch in (*self.retries, *self.waiting) if batch.deadline <= now]
        for batch in gone:
            if batch in self.retries:
                self.retries.remove(batch)
                self.needs_identity = self.needs_identity or batch.base_sequence != NO_SEQUENCE
            else:
                self.waiting.remove(batch)
        return gone


class Accumulator:
    def __init__(
        self,
        *,
        batch_bytes: int,
        linger: float,
        delivery_timeout: float,
        memory_bytes_max: int,
        is_idempotent: bool,
    ) -> None:
        self.queues: dict[TopicPartition, PartitionQueue] = {}  # in the order in which they first got a record
        self.used_bytes = 0
        self.flushes = 0  # how many wait for everything to leave
        self.failure: BarnabasError | None = None  # the first one that nobody waited for
        self.on_failure: Callable[[BarnabasError], None] = lambda error: None
        self._batch_bytes = batch_bytes
        self._linger = linger
        self._delivery_timeout = delivery_timeout
        self.memory_bytes_max = memory_bytes_max
        self._is_idempotent = is_idempotent
        self._unsettled: dict[Batch, None] = {}
        self._next_order = 0

    def has_room(self, size_bytes: int) -> bool:
        """For a batch that a record of this size opens. One larger than the whole memory is let in alone."""
        return self.used_bytes + max(self._batch_bytes, size_bytes) <= self.memory_bytes_max or not self._unsettled

    def append(
        self,
        partition: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        now: float,
    ) -> Delivery:
        """Into the newest batch of the partition, or a new one."""
        queue = self.queue(partition)
        delivery = queue.waiting[-1].promise(timestamp_ms, key, value, headers) if queue.waiting else None
        if delivery is None:
            batch = self.open(queue, size_of(key, value, headers), now=now)
            delivery = batch.promise(timestamp_ms, key, value, headers)
        assert delivery is not None
        return delivery

    def queue(self, partition: TopicPartition) -> PartitionQueue:
        queue = self.queues.get(partition)
        if queue is None:
            queue = self.queues[partition] = PartitionQueue(partition, is_idempotent=self._is_idempotent)
        return queue

    def open(self, queue: PartitionQueue, size_bytes: int, *, now: float) -> Batch:
        """A new batch at the end of the queue, for a record of this size and what comes after it."""
        return self._enqueue(queue, Appended(self._batch_bytes), max(self._batch_bytes, size_bytes), now)

    def append_whole(self, partition: TopicPartition, content: BatchContent, *, now: float) -> Batch:
        """Records that are a batch of their own already."""
        return self._enqueue(self.queue(partition), content, content.size_bytes, now)

    def _enqueue(self, queue: PartitionQueue, content: BatchContent, reserved_bytes: int, now: float) -> Batch:
        if queue.waiting:
            queue.waiting[-1].close()  # or what comes later would overtake this one
        self._next_order += 1
        deadline = now + self._delivery_timeout
        batch = Batch(queue.partition, content, order=self._next_order, opened_at=now, deadline=deadline)
        batch.reserved_bytes = reserved_bytes
        self.used_bytes += reserved_bytes
        self._unsettled[batch] = None
        queue.waiting.append(batch)
        return batch

    def withdraw(self, batch: Batch) -> None:
        """A batch whose first record could not be written: nobody has heard of it."""
        self.queues[batch.partition].waiting.remove(batch)
        batch.close()
        del self._unsettled[batch]
        self.used_bytes -= batch.reserved_bytes

    @property
    def unsettled(self) -> list[Batch]:
        return list(self._unsettled)

    def sendable_at(self, queue: PartitionQueue) -> float | None:
        return queue.sendable_at(linger=self._linger, is_flushing=self.flushes > 0, batch_bytes=self._batch_bytes)

    def settled(self, batch: Batch) -> None:
        """Forget a batch whose records were delivered or have failed."""
        del self._unsettled[batch]
        self.used_bytes -= batch.reserved_bytes
        if batch.error is not None:
            self.on_failure(batch.error)
            if not batch.is_watched and self.failure is None:
                self.failure = batch.error

    def split(self, queue: PartitionQueue, batch: Batch) -> None:
        halves = batch.split()
        queue.replace(batch, halves)
        del self._unsettled[batch]
        self.used_bytes -= batch.reserved_bytes
        for half in halves:
            self._unsettled[half] = None
            self.used_bytes += half.reserved_bytes

    def expire(self, now: float) -> None:
        for queue in self.queues.values():
            for batch in queue.expired(now):
                batch.fail(TimedOut(f"{batch.partition}: not delivered within {self._delivery_timeout:g} s"))
                self.settled(batch)

    def drop_unsent(self, error: BarnabasError) -> None:
        """Fail everything that is not on its way to a broker at this moment."""
        for queue in self.queues.values():
            for batch in (*queue.retries, *queue.waiting):
                batch.fail(error)
                self.settled(batch)
            queue.needs_identity = queue.needs_identity or bool(queue.retries)
            queue.retries.clear()
            queue.waiting.clear()

    def renew_identities(self, identity: Identity) -> None:
        """Every queue that is not numbered under this identity starts its sequence anew."""
        for queue in self.queues.values():
            queue.needs_identity = queue.needs_identity or queue.identity != identity

    def adopt(self, queue: PartitionQueue, identity: Identity) -> None:
        for batch in queue.adopt(identity):
            batch.fail(
                LostSequence(
                    f"{batch.partition}: the batch may have been written; to send it again might write it twice"
                )
            )
            self.settled(batch)


def _rank(batch: Batch) -> tuple[int, int]:
    return batch.rank
