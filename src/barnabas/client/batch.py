"""Records on their way to one partition, and the promise that each of them carries.

A batch has one future for all of its records; a :class:`Delivery` is a record's share of it, so a record costs one
small object and not a future of its own. The accumulator fills batches, the sender encodes and settles them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition
from barnabas.wire.batch import HEADER_BYTES
from barnabas.wire.compression import Codec
from barnabas.wire.records import BatchFacts, encode_batch

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Entry: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]  # timestamp, key, value, headers

RECORD_OVERHEAD_BYTES: Final = 21  # the varints of a record without headers take no more
HEADER_OVERHEAD_BYTES: Final = 10


class RecordMetadata(NamedTuple):
    """Where a record went. The offset is -1 if nobody was asked (acks=0) or the broker no longer knew it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Identity(NamedTuple):
    """Who sends: without idempotence nobody in particular."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of what a record takes in a batch."""
    size = RECORD_OVERHEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + 4 * len(name) + (len(content) if content else 0)
    return size


class BatchContent:
    """Records that come to a batch all at once and are never taken apart into Python's values."""

    size_bytes: int

    def __len__(self) -> int:
        raise NotImplementedError

    def part(self, start: int, end: int) -> BatchContent:
        raise NotImplementedError

    def timestamp_ms(self, index: int) -> int:
        raise NotImplementedError

    def encode(self, **facts: Unpack[BatchFacts]) -> bytearray:
        raise NotImplementedError


class Batch:
    __slots__ = (
        "_successors",
        "attempts",
        "base_offset",
        "base_sequence",
        "deadline",
        "done",
        "encoded",
        "error",
        "first_index",
        "identity",
        "is_doubtful",
        "is_watched",
        "log_append_time_ms",
        "opened_at",
        "order",
        "partition",
        "records",
        "records_bytes",
    )

    def __init__(self, partition: TopicPartition, *, order: int, opened_at: float, deadline: float) -> None:
        self.partition = partition
        self.order = order
        self.first_index = 0  # of a batch that was split: where this half began
        self.opened_at = opened_at
        self.deadline = deadline
        self.records: list[Entry] | BatchContent = []
        self.records_bytes = 0  # as they were counted when they came in
        self.attempts = 0
        self.identity = Identity()
        self.base_sequence = NO_SEQUENCE
        self.encoded: bytearray | None = None
        self.is_doubtful = False  # it may have been written although nobody said so
        self.is_watched = False  # somebody waits for it, so its failure is not lost
        self.base_offset = NO_OFFSET
        self.log_append_time_ms = -1
        self.error: BarnabasError | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._successors: tuple[Batch, ...] = ()

    def __repr__(self) -> str:
        return f"<Batch {self.partition} records={len(self.records)} sequence={self.base_sequence}>"

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + self.records_bytes

    @property
    def is_open(self) -> bool:
        """More records may be added."""
        return not self.attempts and isinstance(self.records, list)

    @property
    def is_split(self) -> bool:
        return bool(self._successors)

    @property
    def rank(self) -> tuple[int, int]:
        """The order in which batches of one partition must be written."""
        return self.order, self.first_index

    def append(self, entry: Entry, size_bytes: int) -> Delivery:
        assert isinstance(self.records, list)
        self.records.append(entry)
        self.records_bytes += size_bytes
        return Delivery(self, len(self.records) - 1)

    def encode(self, codec: Codec, *, is_transactional: bool = False) -> bytearray:
        if self.encoded is None:
            facts: BatchFacts = {
                "codec": codec,
                "producer_id": self.identity.producer_id,
                "producer_epoch": self.identity.producer_epoch,
                "base_sequence": self.base_sequence,
                "is_transactional": is_transactional,
            }
            records = self.records
            self.encoded = encode_batch(records, **facts) if isinstance(records, list) else records.encode(**facts)
        return self.encoded

    def number(self, identity: Identity, base_sequence: int) -> None:
        """Give the batch its place in the producer's sequence; a broker knows a repetition by it."""
        self.identity = identity
        self.base_sequence = base_sequence
        self.encoded = None

    def succeed(self, base_offset: int, log_append_time_ms: int) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._settle()

    def fail(self, error: BarnabasError) -> None:
        self.error = error
        self._settle()

    def split(self) -> tuple[Batch, Batch]:
        """Two halves in place of a batch that was too large; their sequence numbers are those of the whole."""
        middle = len(self.records) // 2
        assert middle > 0
        halves = self._part(0, middle), self._part(middle, len(self.records))
        self._successors = halves
        self._settle()
        return halves

    def _part(self, start: int, end: int) -> Batch:
        part = Batch(self.partition, order=self.order, opened_at=self.opened_at, deadline=self.deadline)
        part.first_index = self.first_index + start
        if isinstance(self.records, list):
            part.records = self.records[start:end]
            part.records_bytes = sum(size_of(key, value, headers) for _, key, value, headers in self.records[start:end])
        else:
            part.records = self.records.part(start, end)
            part.records_bytes = part.records.size_bytes
        part.attempts = self.attempts
        part.is_watched = self.is_watched
        if self.base_sequence != NO_SEQUENCE:
            part.number(self.identity, (self.base_sequence + start) & 0x7FFFFFFF)
        return part

    def _settle(self) -> None:
        self.encoded = None
        if not self.done.done():
            self.done.set_result(None)

    def after_split(self, index: int) -> tuple[Batch, int]:
        """Where a record is now: here, or in one of the halves that took this batch's place."""
        batch = self
        while batch._successors:
            first, second = batch._successors
            batch, index = (first, index) if index < len(first.records) else (second, index - len(first.records))
        return batch, index

    def metadata(self, index: int) -> RecordMetadata:
        if self.error is not None:
            raise self.error
        offset = NO_OFFSET if self.base_offset < 0 else self.base_offset + index
        timestamp_ms = self.log_append_time_ms
        if timestamp_ms < 0:
            records = self.records
            timestamp_ms = records[index][0] if isinstance(records, list) else records.timestamp_ms(index)
        return RecordMetadata(self.partition.topic, self.partition.partition, offset, timestamp_ms)


async def delivered(batch: Batch) -> None:
    """Until every record of the batch is acknowledged, in however many pieces it went."""
    index = 0
    while index < len(batch.records):
        await Delivery(batch, index)
        piece, position = batch.after_split(index)
        index += len(piece.records) - position


class Delivery(NamedTuple):
    """Await it to learn where the record went, or why it did not go."""

    batch: Batch  # the one that it came into
    number: int  # of the record in it

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self.batch.after_split(self.number)
        while not batch.done.done():
            batch.is_watched = True
            # The future belongs to all records of the batch: one waiter that is cancelled must not cancel it.
            yield from asyncio.shield(batch.done).__await__()
            batch, index = batch.after_split(index)
        batch.is_watched = True
        return batch.metadata(index)

    @property
    def is_done(self) -> bool:
        return self.batch.after_split(self.number)[0].done.done()

    @property
    def metadata(self) -> RecordMetadata:
        """Where the record went, once it is done; raises why it did not go."""
        batch, index = self.batch.after_split(self.number)
        return batch.metadata(index)
