"""Reads records: of the partitions that it is told to read, or of its share of what a group reads.

One by one (``async for``), many at a time (``poll``, ``batches``). Positions are the cursors', requests the
fetcher's, the group's doings those of ``group.py``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.fetch.cursor import Cursor
from barnabas.client.fetch.fetcher import Fetcher
from barnabas.client.group.commits import OffsetAndMetadata
from barnabas.client.group.consumer_group import Group, RebalanceListener
from barnabas.client.group.stored_offsets import StoredOffsets
from barnabas.client.offsets import EARLIEST, LATEST_TIMESTAMP, Start, list_offsets, resolve
from barnabas.client.record import ConsumerRecord
from barnabas.client.serdes.serde import K, Serde, V
from barnabas.client.settings.client import settled
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import NO_LEADER_EPOCH, TopicPartition
from barnabas.transport.lane import retrieved
from barnabas.wire.columns import schema
from barnabas.world.world import World

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.scan.needles import Probe
    from barnabas.client.serdes.coder import Coder

T = TypeVar("T")

__all__ = ["Consumer", "ConsumerRecord", "RebalanceListener"]


class Consumer(StoredOffsets, Generic[K, V]):
    """Used as ``async with Consumer(settings) as consumer: await consumer.subscribe(...)``, then ``async for``.

    ``key`` and ``value`` are the serdes of what is read; without them keys and values are bytes.
    """

    def __init__(
        self,
        settings: ConsumerSettings | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        cluster: Cluster | None = None,
        world: World | None = None,
    ) -> None:
        self.settings = settled(ConsumerSettings, settings)
        self._coder: Coder[K, V] | None = None
        if key is not None or value is not None:
            from barnabas.client.serdes.coder import Coder

            self._coder = Coder(key, value)
        self.cluster = cluster or Cluster(self.settings, world=world)
        self._owns_cluster = cluster is None
        self._group: Group | None = None
        self._cursors: dict[TopicPartition, Cursor] = {}
        self._fetcher: Fetcher | None = None
        self._running: asyncio.Task[None] | None = None
        self._ready: list[ConsumerRecord[K, V]] = []  # taken but not handed out by the iterator, last one first
        self._turn = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an exception the last records may not be done with: better to read them again than to call them done.
        await self.close(commit=kind is None)

    async def subscribe(
        self, topics: str | Iterable[str] | re.Pattern[str], *, listener: RebalanceListener | None = None
    ) -> None:
        """Read this consumer's share of what its group reads: topics by name, or all that match a pattern."""
        await self.unsubscribe()
        if not isinstance(topics, re.Pattern):
            topics = (topics,) if isinstance(topics, str) else tuple(sorted(set(topics)))
        fetcher = self._started()
        self._group = Group(
            self.cluster,
            self.settings,
            topics,
            cursors=self._cursors,
            listener=listener,
            position=self.position,
            on_change=fetcher.news.set,
        )

    async def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        try:
            if self._group is not None:
                await self._group.close(commit=True)
        finally:
            self._group = None
            self._cursors.clear()
            self._ready.clear()

    async def assign(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Start],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
        until_end: bool = False,
        probe: Probe | None = None,
    ) -> None:
        """Read these partitions and no others, each from its start, or from the earliest record.

        With ``ends``, or ``until_end`` for where the partitions end now, reading stops there. Batches in which
        ``probe`` finds that nothing can match are skipped without decoding them.
        """
        if self._group is not None:
            await self.unsubscribe()
        starts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, EARLIEST)
        stops = dict(ends or {})
        if until_end:
            latest = dict.fromkeys(sorted(set(starts) - set(stops)), LATEST_TIMESTAMP)
            listed = await list_offsets(self.cluster, latest, isolation_level=self.settings.isolation_level)
            stops |= {place: entry.offset for place, entry in listed.items()}
        offsets = await resolve(self.cluster, starts, isolation_level=self.settings.isolation_level)
        cursors = {place: Cursor(place, self.settings) for place in sorted(starts)}
        for place, cursor in cursors.items():
            cursor.seek(offsets[place])
            cursor.end_offset = stops.get(place)
            cursor.probe = probe
        self._cursors.clear()
        self._cursors.update(cursors)
        self._ready.clear()
        self._started().wake()

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._cursors)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that will be handed out; -1 while that is not known yet."""
        ahead = [record.offset for record in self._ready if (record.topic, record.partition) == partition]
        return min([*ahead, self._cursors[partition].position])

    def epoch_before(self, partition: TopicPartition, offset: int) -> int:
        """The leader epoch of the record before an offset; -1 if it was not read here, or if nobody knows."""
        cursor = self._cursors.get(partition)
        return NO_LEADER_EPOCH if cursor is None else cursor.epoch_before(offset)

    def high_watermark(self, partition: TopicPartition) -> int:
        """Where the partition ended at the last fetch; -1 before the first one."""
        return self._cursors[partition].high_watermark

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets are still ahead, as of the last fetch; None before the first one."""
        high_watermark = self._cursors[partition].high_watermark
        return None if high_watermark < 0 else max(0, high_watermark - self.position(partition))

    async def seek_to(self, starts: Mapping[TopicPartition, Start]) -> None:
        """Go on from there: an edge, a time (``Start.at_time``), so many before the end (``Start.before_last``)."""
        offsets = await resolve(self.cluster, starts, isolation_level=self.settings.isolation_level)
        for partition in starts:
            self.seek(partition, offsets[partition])

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on from there. With a leader epoch, as ``committed`` gives it, a log that was truncated is noticed."""
        entry = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        self._cursors[partition].seek(entry.offset, entry.leader_epoch)
        self._ready = [record for record in self._ready if (record.topic, record.partition) != partition]
        self._started().wake()

    def pause(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._cursors[partition].is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._cursors[partition].is_paused = False
        self._started().wake()

    @property
    def paused(self) -> list[TopicPartition]:
        return [partition for partition, cursor in self._cursors.items() if cursor.is_paused]

    @property
    def is_at_end(self) -> bool:
        """Everything up to the ends was taken; never true without ends."""
        return self._group is None and all(cursor.is_at_end for cursor in self._cursors.values())

    async def poll(self, count_max: int | None = None, *, timeout_ms: int | None = None) -> list[ConsumerRecord[K, V]]:
        """Records as soon as there are some; none when the time is up or every end is reached.

        Whoever polls again says that he is done with what he got before: that is when partitions may move to other
        members and positions are stored.
        """
        count_max = count_max or self.settings.max_poll_records
        if self._ready:
            rest = self._ready[: -count_max - 1 : -1]
            del self._ready[-len(rest) :]
            return rest
        taken = await self._wait_for(lambda: self._take(count_max), timeout_ms)
        return cast("list[ConsumerRecord[K, V]]", taken) if self._coder is None else await self._decoded(taken)

    async def poll_arrow(self, *, timeout_ms: int | None = None, with_headers: bool = False) -> pyarrow.Table:
        """All records that are here, as soon as there are some, as columns: no Python object is made for a record.

        The columns are key, value, topic, partition, offset, timestamp and timestampType; headers are one more column,
        a list of key and value for each row, if they are asked for.
        """
        import pyarrow as pa

        ready, self._ready = self._ready[::-1], []
        self._rewind(ready)  # what the iterator holds is read again, as columns
        batches = await self._wait_for(lambda: self._take_columns(with_headers=with_headers), timeout_ms)
        return pa.Table.from_batches(batches, schema=schema(with_headers=with_headers))

    async def _decoded(self, records: list[ConsumerRecord]) -> list[ConsumerRecord[K, V]]:
        """What could be decoded. The record that could not be is read again by the next poll, which raises why."""
        assert self._coder is not None
        try:
            decoded, error = await self._coder.decode(records)
        except BaseException:  # whoever cancels a poll has not seen its records
            self._rewind(records)
            raise
        self._rewind(records[len(decoded) :])
        if error is not None and not decoded:
            raise error
        return decoded

    def _rewind(self, records: Iterable[ConsumerRecord[Any, Any]]) -> None:
        """The records, which are the newest that were taken, are taken again by the next poll."""
        for record in records:
            cursor = self._cursors.get(TopicPartition(record.topic, record.partition))
            if cursor is not None and record.offset < cursor.position:
                cursor.rewind(record.offset)

    def give_back(self, records: Iterable[ConsumerRecord[K, V]]) -> None:
        """Records of the last poll that were not looked at: the next poll hands them out again."""
        self._ready.extend(reversed(list(records)))

    async def _wait_for(self, take: Callable[[], list[T]], timeout_ms: int | None) -> list[T]:
        """Until there is something to take; nothing when the time is up or every end is reached."""
        fetcher, group = self._started(), self._group
        try:
            if group is not None:
                group.session.is_polling = True
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while True:
                    if group is not None:
                        await group.settle()
                    taken = take()
                    if taken or self.is_at_end:
                        break
                    await self._wait_for_news(fetcher)
        except TimeoutError:
            return []
        finally:
            if group is not None:
                group.session.is_polling = False
                group.session.polled_at = asyncio.get_running_loop().time()
        fetcher.wake()
        return taken

    async def batches(
        self, count_max: int | None = None, *, timeout_ms: int | None = None
    ) -> AsyncIterator[list[ConsumerRecord[K, V]]]:
        """Polls without end, or until all ends are reached; with a time-out a batch may be empty."""
        while True:
            records = await self.poll(count_max, timeout_ms=timeout_ms)
            if not records and self.is_at_end:
                return
            yield records

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord[K, V]:
        if not self._ready:
            records = await self.poll()
            if not records:
                raise StopAsyncIteration
            records.reverse()
            self._ready = records
        return self._ready.pop()

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group, if there is one; with automatic commits the positions are stored unless told not to."""
        try:
            if self._group is not None:
                await self._group.close(commit=commit)
        finally:
            self._group = None
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])
            if self._fetcher is not None:
                await self._fetcher.end_sessions()
            if self._owns_cluster:
                await self.cluster.close()

    def _take_columns(self, *, with_headers: bool) -> list[pyarrow.RecordBatch]:
        assert self._fetcher is not None
        self._fetcher.news.clear()
        taken: list[pyarrow.RecordBatch] = []
        for cursor in self._cursors.values():
            if not cursor.is_paused:
                taken += [batch for batch in cursor.take_columns(with_headers=with_headers) if batch.num_rows]
            if cursor.error is not None and not taken:
                error, cursor.error = cursor.error, None
                raise error
        return taken

    def _take(self, count_max: int) -> list[ConsumerRecord]:
        """From one partition after the other, and not always from the same one first."""
        assert self._fetcher is not None
        self._fetcher.news.clear()
        cursors = list(self._cursors.values())
        self._turn += 1
        turn = self._turn % len(cursors) if cursors else 0
        taken: list[ConsumerRecord] = []
        for cursor in cursors[turn:] + cursors[:turn]:
            if not cursor.is_paused:
                taken += cursor.take(count_max - len(taken))
            if cursor.error is not None and not taken:
                error, cursor.error = cursor.error, None
                raise error
            if len(taken) >= count_max:
                break
        return taken

    async def _wait_for_news(self, fetcher: Fetcher) -> None:
        fetcher.wake()
        await fetcher.news.wait()
        assert self._running is not None
        if self._running.done():
            self._running.result()

    def _started(self) -> Fetcher:
        if self._fetcher is None:
            self._fetcher = Fetcher(self.cluster, self.settings, self._cursors)
            self._running = asyncio.get_running_loop().create_task(self._fetcher.run(), name="consumer")
            self._running.add_done_callback(retrieved)
            self._running.add_done_callback(lambda _: fetcher.news.set())
        fetcher = self._fetcher
        return fetcher
