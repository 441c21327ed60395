"""Reads a named store from its changelog topic: the first query reads a partition, later ones what is new.

Only committed records are read, and a transaction of an application is visible as a whole, so contents are never those
of half a batch. The newest record that a task wrote in a transaction has the task's position in a header.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.client.offsets import EARLIEST, Start
from barnabas.client.partitions.partitioner import of_key
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.streams.catalog.application import StoreEntry
from barnabas.streams.errors import StreamsError
from barnabas.streams.positions import POSITION_HEADER, decode_position
from barnabas.streams.queries.answers import Answer, Answers, StoreRow, Version
from barnabas.streams.queries.contents import FOREVER, Contents, StoredRow, contents_of
from barnabas.streams.serdes import Codec
from barnabas.streams.windows import Windowed

__all__ = ["STORE_BYTES_MAX", "StoreReader", "StoreTooLarge"]

STORE_BYTES_MAX: Final = 256 * 1024 * 1024  # default limit of the memory of one reader
POLL_MS: Final = 5_000
SETTINGS: Final = ConsumerSettings(isolation_level="read_committed", enable_auto_commit=False)


class StoreTooLarge(StreamsError):
    """A store needs more memory than the reader may use."""


class _Partition:
    def __init__(self, entry: StoreEntry) -> None:
        self.contents: Contents = contents_of(entry)
        self.next: int | None = None  # offset of the next record; None before the first one
        self.position: dict[str, dict[int, int]] = {}


class StoreReader:
    """A store of an application. Its answers contain all that was committed when the query began.

    entry: the store. key, value: codecs. bytes_max: limit of the memory for contents.
    """

    def __init__(
        self, cluster: Cluster, entry: StoreEntry, *, key: Codec, value: Codec, bytes_max: int = STORE_BYTES_MAX
    ) -> None:
        self.entry = entry
        self._cluster = cluster
        self._key = key
        self._value = value
        self._bytes_max = bytes_max
        self._partitions: dict[int, _Partition] = {}
        self._topic_id = b""
        self._turn = asyncio.Lock()

    @property
    def size(self) -> int:
        """Bytes of memory of the contents, about."""
        return sum(each.contents.size for each in self._partitions.values())

    async def get(self, key: Any, *, at: int | None = None, partition: int | None = None) -> Answer:
        """The value of a key; reads one partition.

        at: time in milliseconds, for the version of that time in a versioned store.
        partition: number of the partition, if the topics are not partitioned by Kafka's default partitioner.
        Raises StreamsError for a store of windows, which has many values for a key: use :meth:`fetch`.
        """
        if self.entry.kind in ("window", "session"):
            raise StreamsError(f"store {self.entry.name} has windows: use fetch(key, first, last)")
        if at is not None and self.entry.kind != "versioned":
            raise StreamsError(f"store {self.entry.name} has no versions; get() without at= returns the newest value")
        number, found = await self._of_key(key, partition)
        rows = self._partitions[number].contents.of_key(found)
        if self.entry.kind == "versioned":
            moment = FOREVER - 1 if at is None else at
            rows = [row for row in rows if row.start <= moment < row.end]
        return self._answer(number, rows[-1] if rows else None)

    async def fetch(
        self, key: Any, first: int | None = None, last: int | None = None, *, partition: int | None = None
    ) -> Answers[StoreRow]:
        """Windows or sessions of a key that start in a range of times, both ends included, in order; one partition."""
        self._require("fetch()", "window", "session")
        number, found = await self._of_key(key, partition)
        rows = [row for row in self._partitions[number].contents.of_key(found) if _starts_in(row, first, last)]
        return Answers([self._row(row) for row in rows], self._positions([number]))

    async def versions(
        self, key: Any, first: int | None = None, last: int | None = None, *, partition: int | None = None
    ) -> Answers[Version]:
        """Versions of a key that were valid at some time in a range, the oldest first; reads one partition."""
        self._require("versions()", "versioned")
        number, found = await self._of_key(key, partition)
        rows = [
            Version(self._value.decode(row.value), row.start, None if row.end == FOREVER else row.end)
            for row in self._partitions[number].contents.of_key(found)
            if (last is None or row.start <= last) and (first is None or row.end > first)
        ]
        return Answers(rows, self._positions([number]))

    async def range(
        self,
        first: Any = None,
        last: Any = None,
        *,
        limit: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Answers[StoreRow]:
        """Rows of a range of keys in the order of the encoded keys, both ends included; reads all partitions.

        limit: largest number of rows. start, end: range of window starts.
        """
        numbers = await self._refresh(None)
        low, high = (None if key is None else self._key.encode(key) for key in (first, last))
        rows = [row for number in numbers for row in self._partitions[number].contents.rows(low, high)]
        rows = sorted(row for row in rows if _starts_in(row, start, end))[:limit]
        return Answers([self._row(row) for row in rows], self._positions(numbers))

    async def all(self, *, limit: int | None = None) -> Answers[StoreRow]:
        """All rows; reads all partitions."""
        return await self.range(limit=limit)

    def _require(self, call: str, *kinds: str) -> None:
        if self.entry.kind not in kinds:
            raise StreamsError(
                f"store {self.entry.name} is a {self.entry.kind} store; {call} needs {' or '.join(kinds)}"
            )

    async def _of_key(self, key: Any, partition: int | None) -> tuple[int, bytes]:
        encoded = self._key.encode(key)
        number = partition
        if number is None:
            number = of_key(self.entry.topic, encoded, await self._count())
        await self._refresh([number])
        return number, encoded

    async def _count(self) -> int:
        found = (await self._cluster.look_up([self.entry.topic])).get(self.entry.topic)
        if found is None:
            raise StreamsError(
                f"topic {self.entry.topic} of store {self.entry.name} does not exist; run the application first"
            )
        if found.id != self._topic_id:  # a topic that was deleted and created again has other records
            self._partitions, self._topic_id = {}, found.id
        return len(found.partitions)

    async def _refresh(self, numbers: Iterable[int] | None) -> list[int]:
        """Read what was committed since the last query; returns the numbers of the partitions."""
        count = await self._count()
        chosen = list(range(count) if numbers is None else numbers)
        if any(not 0 <= number < count for number in chosen):
            raise StreamsError(f"store {self.entry.name} has partitions 0 to {count - 1}, not {chosen[0]}")
        async with self._turn:
            starts: dict[TopicPartition, Start] = {}
            for number in chosen:
                part = self._partitions.setdefault(number, _Partition(self.entry))
                starts[TopicPartition(self.entry.topic, number)] = (
                    EARLIEST if part.next is None else Start.at(part.next)
                )
            try:
                await self._read(starts)
            except BaseException:
                for number in chosen:  # what was read halfway is not a state of the store
                    self._partitions.pop(number, None)
                raise
        return chosen

    async def _read(self, starts: dict[TopicPartition, Start]) -> None:
        reader = Consumer(SETTINGS, cluster=self._cluster)
        try:
            await reader.assign(starts, until_end=True)
            while not reader.is_at_end:
                self._apply(await reader.poll(timeout_ms=POLL_MS))
            for place in starts:
                self._partitions[place.partition].next = reader.position(place)
        finally:
            await reader.close(commit=False)

    def _apply(self, records: Iterable[ConsumerRecord]) -> None:
        is_changelog = self.entry.topic.endswith("-changelog")
        for record in records:
            part = self._partitions[record.partition]
            if record.key is not None:
                part.contents.apply(record.key, record.value, record.timestamp_ms)
            if not is_changelog:  # a global table: the topic itself
                part.position = {record.topic: {record.partition: record.offset + 1}}
            for name, value in record.headers:
                if name == POSITION_HEADER and value is not None:
                    part.position = decode_position(value)
        if self.size > self._bytes_max:
            raise StoreTooLarge(
                f"store {self.entry.name} needs more than {self._bytes_max:,} bytes of memory; raise the limit, or ask "
                f"for one key, which reads one partition"
            )

    def _answer(self, number: int, row: StoredRow | None) -> Answer:
        position = self._partitions[number].position
        if row is None:
            return Answer(None, None, number, position)
        return Answer(self._value.decode(row.value), row.timestamp, number, position)

    def _row(self, row: StoredRow) -> StoreRow:
        key: Any = self._key.decode(row.key)
        if self.entry.kind in ("window", "session"):
            key = Windowed(key, row.start, row.end)
        return StoreRow(key, self._value.decode(row.value), row.timestamp)

    def _positions(self, numbers: Iterable[int]) -> dict[int, dict[str, dict[int, int]]]:
        return {number: self._partitions[number].position for number in numbers}


def _starts_in(row: StoredRow, first: int | None, last: int | None) -> bool:
    return (first is None or row.start >= first) and (last is None or row.start <= last)
