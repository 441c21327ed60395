"""Where records come in: which partition, whether there is room, which batch. The way that every record takes is short.

``quick`` is a plain call that answers at once, or with None where somebody must be asked or waited for; ``wait`` then
does that. The producer calls both; the rules of batches are the accumulator's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import repeat
from typing import Final

from barnabas.client.accumulator import Accumulator, PartitionQueue
from barnabas.client.batch import Appended, Batch, Delivery, Headers, RecordMetadata, size_of
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CannotEncode, RecordTooLarge, TimedOut
from barnabas.client.metadata import TopicMetadata
from barnabas.client.partitioner import Partitioner, Sticky
from barnabas.client.producer_settings import ProducerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

_new_tuple: Final = tuple.__new__


class _Run:
    """Keyless records of a topic on their way into one batch; ``left_bytes`` is what its partition gets before another.

    Never changed, so that whoever has one in hand, in any thread, has a batch and the way into that very batch.
    """

    __slots__ = ("batch", "extend", "fresh", "left_bytes", "promise", "queue")

    def __init__(
        self, fresh: Mapping[str, TopicMetadata], queue: PartitionQueue, batch: Batch, left_bytes: int
    ) -> None:
        assert isinstance(batch.records, Appended)
        self.fresh = fresh  # as long as this is what is known of the cluster, the partition is a good choice
        self.queue = queue
        self.batch = batch
        self.left_bytes = left_bytes
        self.promise = batch.records.builder.promise
        self.extend = batch.records.builder.extend


class Intake:
    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, accumulator: Accumulator, partitioner: Partitioner
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._accumulator = accumulator
        self._partitioner = partitioner
        self._batch_bytes = max(1, settings.batch_size)
        self._sticky = Sticky(cluster.world.entropy, batch_bytes=self._batch_bytes)
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
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        queue, delivery = None, None
        if key is not None or partition is not None:
            queue = self._accumulator.queue(_new_tuple(TopicPartition, (topic, self.place(found, key, partition))))
        try:
            if queue is None:
                run = self._runs.get(topic)
                if run is not None and run.fresh is self._cluster.fresh:
                    delivery = run.promise(Delivery, run.batch, timestamp_ms, None, value, headers)
            elif queue.waiting:
                delivery = queue.waiting[-1].promise(timestamp_ms, key, value, headers)
            return delivery or self._opening(found, queue, (timestamp_ms, key, value, headers))
        except (TypeError, ValueError) as error:
            raise CannotEncode(f"the record cannot be encoded: {error}") from error

    def quickest(self, topic: str, value: bytes | None) -> Delivery | None:
        """A keyless record into a batch that is open; None if there is none. Opens nothing, asks nobody.

        Where the codec is compiled and the value is bytes, another thread than the loop's may call this too: the
        record is appended in one step.
        """
        run = self._runs.get(topic)
        if run is None or run.fresh is not self._cluster.fresh:
            return None
        try:
            return run.promise(Delivery, run.batch, self._wall_ms(), None, value, ())  # type: ignore[no-any-return]
        except (TypeError, ValueError) as error:
            raise CannotEncode(f"the record cannot be encoded: {error}") from error

    def run_length(self, topic: str) -> int:
        """How many records the batch has that keyless ones went to last."""
        run = self._runs.get(topic)
        return 0 if run is None else len(run.batch.records)

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

    def _next_run(self, topic: TopicMetadata, size_bytes: int) -> _Run:
        """The partition of the last run until it got a batch's worth, then another one (KIP-794)."""
        run = self._runs.get(topic.name)
        fresh, left_bytes = self._cluster.fresh, 0
        if run is not None and run.fresh is fresh:
            left_bytes = run.left_bytes - run.batch.size_bytes - size_bytes
        if run is not None and left_bytes > 0:
            queue = run.queue
        else:
            partitions = topic.led_partitions or range(len(topic.partitions))
            chosen = self._sticky.choose(topic.name, partitions, size_bytes=self._batch_bytes)
            queue, left_bytes = self._accumulator.queue(TopicPartition(topic.name, chosen)), self._batch_bytes
        run = self._runs[topic.name] = _Run(fresh, queue, self._open(queue, size_bytes), left_bytes)
        return run

    def quick_run(
        self, topic: str, pairs: list[tuple[bytes | None, bytes | None]], index: int
    ) -> tuple[Batch, int, int] | None:
        """As many keyless records from ``index`` on as one batch takes: the batch, where in it they are, how many."""
        run = self._runs.get(topic)
        if run is None or run.fresh is not self._cluster.fresh:
            return None
        first, count = run.extend(pairs, index, self._wall_ms())
        return (run.batch, first, count) if count else None

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
