"""Where records come in: which partition, whether there is room, which batch. The way that every record takes is short.

``quick`` is a plain call that answers at once, or with None where somebody must be asked or waited for; ``wait`` then
does that. The producer calls both; the rules of batches are the accumulator's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from barnabas.client.accumulator import Accumulator, PartitionQueue
from barnabas.client.batch import (
    HEADER_OVERHEAD_BYTES,
    RECORD_OVERHEAD_BYTES,
    Batch,
    Delivery,
    Entry,
    Headers,
    RecordMetadata,
)
from barnabas.client.cluster import Cluster
from barnabas.client.errors import RecordTooLarge, TimedOut
from barnabas.client.metadata import TopicMetadata
from barnabas.client.partitioner import Partitioner, Sticky
from barnabas.client.producer_settings import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.wire.batch import HEADER_BYTES

_new_tuple: Final = tuple.__new__


class _Run:
    """Keyless records of a topic on their way to one partition, until it got a batch's worth."""

    __slots__ = ("left_bytes", "queue", "topic")

    def __init__(self, topic: TopicMetadata, queue: PartitionQueue, left_bytes: int) -> None:
        self.topic = topic
        self.queue = queue
        self.left_bytes = left_bytes


class Intake:
    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, accumulator: Accumulator, partitioner: Partitioner
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._accumulator = accumulator
        self._partitioner = partitioner
        self._batch_bytes = settings.batch_size
        self._sticky = Sticky(cluster.world.entropy, batch_bytes=max(1, settings.batch_size))
        self._record_bytes_max = min(settings.max_request_size, settings.buffer_memory)
        self._wall_ms = cluster.world.clock.wall_ms
        self._runs: dict[str, _Run] = {}
        self.has_news = False  # a batch was opened, so the sender has a reason to look

    def quick(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Delivery | None:
        found = self._cluster.fresh.get(topic)
        if found is None:
            return None
        size_bytes = RECORD_OVERHEAD_BYTES
        if key is not None:
            size_bytes += len(key)
        if value is not None:
            size_bytes += len(value)
        if headers:
            for name, content in headers:
                size_bytes += HEADER_OVERHEAD_BYTES + 4 * len(name) + (len(content) if content else 0)
        if size_bytes > self._record_bytes_max:
            raise RecordTooLarge(f"a record of {size_bytes} bytes is above max.request.size or buffer.memory")
        accumulator = self._accumulator
        if accumulator.used_bytes + size_bytes > accumulator.memory_bytes_max and not accumulator.has_room(size_bytes):
            return None
        if partition is None and key is None:
            run = self._runs.get(topic)
            if run is None or run.left_bytes <= 0 or run.topic is not found:
                run = self._next_run(found)
            run.left_bytes -= size_bytes
            queue = run.queue
        else:
            place = self.place(found, key, partition)
            queue = accumulator.queue(_new_tuple(TopicPartition, (topic, place)))
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        accumulator.used_bytes += size_bytes
        waiting = queue.waiting
        if waiting:
            batch = waiting[-1]
            records = batch.records
            if (
                not batch.attempts
                and type(records) is list
                and HEADER_BYTES + batch.records_bytes + size_bytes <= self._batch_bytes
            ):
                records.append((timestamp_ms, key, value, headers))
                batch.records_bytes += size_bytes
                return _new_tuple(Delivery, (batch, len(records) - 1))
        batch = accumulator.open(queue, now=asyncio.get_running_loop().time())
        self.has_news = True
        return batch.append((timestamp_ms, key, value, headers), size_bytes)

    def quick_run(
        self, topic: str, pairs: Sequence[tuple[bytes | None, bytes | None]], index: int
    ) -> tuple[Batch, int, int] | None:
        """As many keyless records from ``index`` on as one batch takes: the batch, where in it they are, how many."""
        found = self._cluster.fresh.get(topic)
        if found is None:
            return None
        run = self._runs.get(topic)
        if run is None or run.left_bytes <= 0 or run.topic is not found:
            run = self._next_run(found)
        waiting = run.queue.waiting
        batch = waiting[-1] if waiting and waiting[-1].is_open else None
        filled = HEADER_BYTES + (batch.records_bytes if batch is not None else 0)
        room = min(self._batch_bytes - filled, self._accumulator.room_bytes)
        now_ms = self._wall_ms()
        entries: list[Entry] = []
        total = 0
        for position in range(index, len(pairs)):
            key, value = pairs[position]
            size_bytes = RECORD_OVERHEAD_BYTES if value is None else RECORD_OVERHEAD_BYTES + len(value)
            if key is not None or total + size_bytes > room:
                break
            total += size_bytes
            entries.append((now_ms, None, value, ()))
        if not entries:
            return None
        if batch is None:
            batch = self._accumulator.open(run.queue, now=asyncio.get_running_loop().time())
            self.has_news = True
        run.left_bytes -= total
        self._accumulator.used_bytes += total
        assert isinstance(batch.records, list)
        first = len(batch.records)
        batch.records += entries
        batch.records_bytes += total
        return batch, first, len(entries)

    def place(self, topic: TopicMetadata, key: bytes | None, partition: int | None) -> int:
        """The partition that was named, or that of the key."""
        count = len(topic.partitions)
        if partition is None:
            assert key is not None
            return self._partitioner(topic.name, key, count)
        if not 0 <= partition < count:
            raise ApiError(
                errors.UNKNOWN_TOPIC_OR_PARTITION,
                f"Topic {topic.name!r} has partitions 0 to {count - 1}, and no {partition}.",
            )
        return partition

    def choose(self, topic: TopicMetadata, size_bytes: int) -> int:
        """A partition for keyless rows that come many at a time."""
        chosen = self._sticky.stay(topic.name, size_bytes)
        if chosen is not None and chosen < len(topic.partitions):
            return chosen
        return self._sticky.choose(
            topic.name, topic.led_partitions or range(len(topic.partitions)), size_bytes=size_bytes
        )

    def _next_run(self, topic: TopicMetadata) -> _Run:
        partitions = topic.led_partitions or range(len(topic.partitions))
        chosen = self._sticky.choose(topic.name, partitions, size_bytes=max(1, self._batch_bytes))
        queue = self._accumulator.queue(TopicPartition(topic.name, chosen))
        run = self._runs[topic.name] = _Run(topic, queue, self._batch_bytes)
        return run

    async def wait(self, topic: str, size_bytes: int, changed: Callable[[], Awaitable[None]]) -> TopicMetadata:
        """Until the topic is known and there is room, or max.block.ms is over."""
        limit_ms = self._settings.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    found = await self._cluster.topic(topic, auto_create=True, timeout_ms=limit_ms)
                    if self._accumulator.has_room(size_bytes):
                        return found
                    await changed()
        except TimeoutError:
            raise TimedOut(f"no room for another record of {topic} within max.block.ms={limit_ms}") from None


def metadata_of(batch: Batch, first: int, count: int) -> list[RecordMetadata]:
    """Of so many records of a batch that is settled: where they went, in their order."""
    if batch.is_split or batch.error is not None or batch.base_offset < 0 or not isinstance(batch.records, list):
        return [Delivery(batch, index).metadata for index in range(first, first + count)]
    topic, partition = batch.partition
    base, appended_ms = batch.base_offset, batch.log_append_time_ms
    return [
        _new_tuple(RecordMetadata, (topic, partition, base + index, entry[0] if appended_ms < 0 else appended_ms))
        for index, entry in enumerate(batch.records[first : first + count], first)
    ]
