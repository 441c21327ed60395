"""Records on their way to one partition, and the promise that each of them carries.

A batch has one future for all of its records; a :class:`Delivery` is a record's share of it, so a record costs one
small object and not a future of its own. Records are written into their batch as they come. The accumulator opens
batches, the sender seals and settles them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition
from barnabas.wire.batch import HEADER_BYTES
from barnabas.wire.compression import Codec
from barnabas.wire.record_builder import RecordBuilder
from barnabas.wire.records import BatchFacts, decode_batch, finish_batch

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

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
    """The records of a batch, none of which is an object of its own."""

    @property
    def size_bytes(self) -> int:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def part(self, start: int, end: int) -> BatchContent:
        raise NotImplementedError

    def timestamps_ms(self, first: int, count: int) -> list[int]:
        raise NotImplementedError

    def encode(self, **facts: Unpack[BatchFacts]) -> bytearray:
        raise NotImplementedError

    def release(self) -> None:
        """They are with the broker, or never will be: only numbers and timestamps are still asked for."""


class Appended(BatchContent):
    """Records that come one by one."""

    def __init__(self, size_bytes_max: int) -> None:
        self.builder = RecordBuilder(HEADER_BYTES, size_bytes_max)
        self._is_sealed = False

    @property
    def size_bytes(self) -> int:
        return self.builder.size_bytes

    def __len__(self) -> int:
        return len(self.builder)

    def part(self, start: int, end: int) -> Appended:
        part = Appended(self.size_bytes)
        for record in decode_batch(self.encode())[start:end]:
            part.builder.append(record.timestamp, record.key, record.value, record.headers)
        part.builder.close()
        return part

    def timestamps_ms(self, first: int, count: int) -> list[int]:
        return self.builder.timestamps(first, count)

    def encode(self, **facts: Unpack[BatchFacts]) -> bytearray:
        plain, count, base_timestamp, max_timestamp = self.builder.take()
        if self._is_sealed:  # under another number before: those bytes may be on their way still
            plain = bytearray(plain)
        self._is_sealed = True
        return finish_batch(plain, count, base_timestamp, max_timestamp, **facts)

    def release(self) -> None:
        self.builder.release()


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
        "refusals",
        "reserved_bytes",
    )

    def __init__(
        self, partition: TopicPartition, records: BatchContent, *, order: int, opened_at: float, deadline: float
    ) -> None:
        self.partition = partition
        self.order = order
        self.first_index = 0  # of a batch that was split: where this half began
        self.opened_at = opened_at
        self.deadline = deadline
        self.records = records
        self.reserved_bytes = 0  # of the producer's memory
        self.attempts = 0
        self.refusals = 0  # attempts that left for a broker, in vain
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
        return self.records.size_bytes

    @property
    def is_split(self) -> bool:
        return bool(self._successors)

    @property
    def rank(self) -> tuple[int, int]:
        """The order in which batches of one partition must be written."""
        return self.order, self.first_index

    def promise(self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers) -> Delivery | None:
        """Append a record; None if the batch takes no more."""
        records = self.records
        if not isinstance(records, Appended):
            return None
        return records.builder.promise(Delivery, self, timestamp_ms, key, value, headers)  # type: ignore[no-any-return]

    def close(self) -> None:
        """What comes later goes into another batch."""
        if isinstance(self.records, Appended):
            self.records.builder.close()

    def encode(self, codec: Codec, *, level: int | None = None, is_transactional: bool = False) -> bytearray:
        if self.encoded is None:
            facts: BatchFacts = {
                "codec": codec,
                "level": level,
                "producer_id": self.identity.producer_id,
                "producer_epoch": self.identity.producer_epoch,
                "base_sequence": self.base_sequence,
                "is_transactional": is_transactional,
            }
            self.encoded = self.records.encode(**facts)
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
        records = self.records.part(start, end)
        part = Batch(self.partition, records, order=self.order, opened_at=self.opened_at, deadline=self.deadline)
        part.first_index = self.first_index + start
        part.reserved_bytes = self.reserved_bytes * (end - start) // len(self.records)
        part.attempts, part.refusals = self.attempts, self.refusals
        part.is_watched = self.is_watched
        if self.base_sequence != NO_SEQUENCE:
            part.number(self.identity, (self.base_sequence + start) & 0x7FFFFFFF)
        return part

    def _settle(self) -> None:
        self.encoded = None
        self.records.release()
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
            (timestamp_ms,) = self.records.timestamps_ms(index, 1)
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
