"""Where records come in: which partition, whether there is room, which batch. The way that every record takes is short.

``quick`` is a plain call that answers at once, or with None where somebody must be asked or waited for; ``wait`` then
does that. Most records need neither: they go into a run that is open. The rules of batches are the accumulator's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import repeat
from typing import Final

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.errors import CannotEncode, RecordTooLarge, TimedOut
from barnabas.client.partitions.partitioner import Sticky, of_key
from barnabas.client.produce.accumulator import Accumulator, PartitionQueue
from barnabas.client.produce.batch import Appended, Batch, Delivery, Headers, RecordMetadata, size_of
from barnabas.client.produce.partitioning import Partitioning, usable
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.wire.record_builder import OpenBatches

_new_tuple: Final = tuple.__new__


class Run:
    """Keyless records of a topic on their way into one batch; ``left_bytes`` is what its partition gets before another.

    Never changed, so that whoever has one in hand, in any thread, has a batch and the way into that very batch. It is
    the topic's as long as ``fresh`` has anything in it.
    """

    __slots__ = ("batch", "extend", "fresh", "left_bytes", "outbox", "promise", "queue")

    def __init__(
        self,
        fresh: dict[str, TopicMetadata],
        queue: PartitionQueue,
        batch: Batch,
        left_bytes: int,
        outbox: object | None,
    ) -> None:
        assert isinstance(batch.records, Appended)
        self.fresh = fresh  # the cluster's; empty as soon as something else is known, or that nothing is
        self.queue = queue
        self.batch = batch
        self.left_bytes = left_bytes
        self.outbox = outbox
        self.promise = batch.records.builder.promise
        self.extend = batch.records.builder.extend


class Intake:
    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, accumulator: Accumulator, partitioning: Partitioning
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._accumulator = accumulator
        self._partitioning = partitioning
        self._heeds_keys = partitioning.by_key is not None
        self._is_murmur2 = partitioning.by_key is of_key
        self._led: dict[str, tuple[TopicMetadata, Sequence[int], list[TopicPartition]]] = {}  # what may be chosen
        self._batch_bytes = max(1, settings.batch_size)
        self._sticky = Sticky(cluster.world.entropy, batch_bytes=self._batch_bytes)
        self._record_bytes_max = min(settings.max_request_size, settings.buffer_memory)
        self._wall_ms = cluster.world.clock.wall_ms
        self.runs: dict[str, Run] = {}  # by topic, for whoever has a keyless record
        self.outbox: object | None = None  # the blocking face's, if that is who sends
        self.straight: OpenBatches | None = None  # where records need neither serde nor transaction
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
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        queue, delivery = None, None
        if partition is not None or (key is not None and self._heeds_keys):
            queue = self._accumulator.queue(_new_tuple(TopicPartition, (topic, self.place(found, key, partition))))
        try:
            if queue is None:
                run = self.runs.get(topic)
                if run is not None and run.fresh:
                    delivery = run.promise(Delivery, run.batch, timestamp_ms, key, value, headers)
            elif queue.waiting:
                delivery = queue.waiting[-1].promise(timestamp_ms, key, value, headers)
            return delivery or self._opening(found, queue, (timestamp_ms, key, value, headers))
        except (TypeError, ValueError) as error:
            raise CannotEncode(f"the record cannot be encoded: {error}") from error

    def _opening(
        self,
        topic: TopicMetadata,
        queue: PartitionQueue | None,
        record: tuple[int, bytes | None, bytes | None, Headers],
    ) -> Delivery | None:
        """A record that needs a new batch, of its partition's queue or of any."""
        size_bytes = size_of(*record[1:])
        if size_bytes > self._record_bytes_max:
            raise RecordTooLarge(f"a record of {size_bytes} bytes is above max.request.size or buffer.memory")
        if not self._accumulator.has_room(size_bytes):
            return None
        batch = self._next_run(topic, size_bytes).batch if queue is None else self._open(queue, size_bytes)
        try:
            return batch.promise(*record)
        except (TypeError, ValueError):
            self._accumulator.withdraw(batch)
            raise

    def _open(self, queue: PartitionQueue, size_bytes: int) -> Batch:
        self.has_news = True
        return self._accumulator.open(queue, size_bytes, now=asyncio.get_running_loop().time())

    def _next_run(self, topic: TopicMetadata, size_bytes: int) -> Run:
        """The partition of the last run until it got a batch's worth, then another one (KIP-794)."""
        run = self.runs.get(topic.name)
        left_bytes = 0
        if run is not None and run.fresh:
            left_bytes = run.left_bytes - run.batch.size_bytes - size_bytes
        if run is not None and left_bytes > 0:
            queue = run.queue
        else:
            chosen = self._choose(topic, self._batch_bytes)
            queue, left_bytes = self._accumulator.queue(TopicPartition(topic.name, chosen)), self._batch_bytes
        batch = self._open(queue, size_bytes)
        run = self.runs[topic.name] = Run(self._cluster.fresh, queue, batch, left_bytes, self.outbox)
        if self.straight is not None:
            assert isinstance(batch.records, Appended)
            owner = batch if self.outbox is None else run
            self.straight.open(topic.name, batch.records.builder, owner, run.fresh)
        return run

    def quick_run(
        self, topic: str, pairs: list[tuple[bytes | None, bytes | None]], index: int
    ) -> tuple[Batch, int, int] | None:
        """As many keyless records from ``index`` on as one batch takes: the batch, where in it they are, how many."""
        run = self.runs.get(topic)
        if run is None or not run.fresh:
            return None
        first, count = run.extend(pairs, index, self._wall_ms())
        return (run.batch, first, count) if count else None

    def place(self, topic: TopicMetadata, key: bytes | None, partition: int | None) -> int:
        """The partition that was named, or that of the key."""
        count = len(topic.partitions)
        if partition is None:
            assert key is not None
            return of_key(topic.name, key, count) if self._is_murmur2 else self._partitioning.of_key(topic, key)
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
        return self._choose(topic, size_bytes)

    def _choose(self, topic: TopicMetadata, size_bytes: int) -> int:
        known = self._led.get(topic.name)
        if known is None or known[0] is not topic:
            led = usable(topic)
            known = self._led[topic.name] = topic, led, [TopicPartition(topic.name, index) for index in led]
        _, partitions, places = known
        loads = None
        if self._settings.partitioner_adaptive_partitioning_enable and len(places) > 1:
            queues = map(self._accumulator.queues.get, places)
            loads = [0 if queue is None else len(queue.waiting) + len(queue.retries) for queue in queues]
        return self._sticky.choose(topic.name, partitions, size_bytes=size_bytes, loads=loads)

    def ask(self, topic: str, key: bytes | None, value: bytes | None) -> int | None:
        """What a partitioner says that is asked for every record; None where nobody minds, or the topic is unknown."""
        found = self._cluster.fresh.get(topic)
        return None if found is None else self._partitioning.choose(found, key, value)

    async def wait(self, topic: str, size_bytes: int, changed: Callable[[], Awaitable[None]]) -> TopicMetadata:
        """Until the topic is known and there is room, or max.block.ms is over."""
        limit_ms = self._settings.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    found = await self._cluster.topic(topic, auto_create=True, timeout_ms=limit_ms)
                    if self._accumulator.has_room(size_bytes):
                        return found
                    self._accumulator.flushes += 1  # nobody lingers while others wait for room
                    try:
                        await changed()
                    finally:
                        self._accumulator.flushes -= 1
        except TimeoutError:
            raise TimedOut(f"no room for another record of {topic} within max.block.ms={limit_ms}") from None


def metadata_of(batch: Batch, first: int, count: int) -> list[RecordMetadata]:
    """Of so many records of a batch that is settled: where they went, in their order."""
    if batch.is_split or batch.error is not None or batch.base_offset < 0:
        return [Delivery(batch, index).metadata for index in range(first, first + count)]
    topic, partition = batch.partition
    offsets = range(batch.base_offset + first, batch.base_offset + first + count)
    appended_ms = batch.log_append_time_ms
    times = repeat(appended_ms) if appended_ms >= 0 else batch.records.timestamps_ms(first, count)
    rows = zip(repeat(topic), repeat(partition), offsets, times, strict=False)
    return list(map(_new_tuple, repeat(RecordMetadata), rows))
