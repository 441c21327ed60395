"""Sends records: batched, compressed, retried without doubling or reordering them, acknowledged one by one.

``send`` waits until the record is where ``acks`` wants it; ``send_soon`` only until there is room for it, so that many
can be under way. Batches are the accumulator's, requests the sender's, the choice of a partition the partitioner's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, Self, cast

from barnabas.client.accumulator import Accumulator
from barnabas.client.arrow_rows import ArrowRows, by_value, checked, partitions_of, slices
from barnabas.client.batch import Batch, Delivery, Headers, RecordMetadata, delivered, size_of
from barnabas.client.cluster import Cluster
from barnabas.client.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.errors import NoTransaction, ProducerClosed, RecordTooLarge, TimedOut, TransactionAborted
from barnabas.client.metadata import TopicMetadata
from barnabas.client.partitioner import Partitioner, Sticky, of_key
from barnabas.client.producer_settings import ProducerSettings
from barnabas.client.sender import Sender
from barnabas.client.serdes.serde import K, Serde, V
from barnabas.client.transactions import OpenTransaction, State, Transactions, end_transaction
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.world.world import World

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.serdes.coder import Coder

ARROW_BATCH_BYTES: Final = 512 * 1024  # rows come many at a time, so batches may be large

__all__ = ["Delivery", "Producer", "RecordMetadata"]


class Producer(Generic[K, V]):
    """Used as ``async with Producer(settings) as producer``; leaving the block flushes.

    ``key`` and ``value`` are the serdes of what is sent; without them keys and values are bytes.
    """

    def __init__(
        self,
        settings: ProducerSettings | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        cluster: Cluster | None = None,
        partitioner: Partitioner = of_key,
        world: World | None = None,
    ) -> None:
        self.settings = settings or ProducerSettings()
        self.cluster = cluster or Cluster(self.settings, world=world)
        self._owns_cluster = cluster is None
        self._clock = self.cluster.world.clock
        self._partitioner = partitioner
        self._coder = _coder(key, value)
        self._sticky = Sticky(self.cluster.world.entropy, batch_bytes=self.settings.batch_size)
        self._accumulator = Accumulator(
            batch_bytes=self.settings.batch_size,
            linger=self.settings.linger_ms / 1000,
            delivery_timeout=self.settings.delivery_timeout_ms / 1000,
            memory_bytes_max=self.settings.buffer_memory,
            is_idempotent=self.settings.enable_idempotence,
        )
        self._transactions: Transactions | None = None
        if self.settings.transactional_id is not None:
            self._transactions = Transactions(
                self.cluster, self.settings.transactional_id, timeout_ms=self.settings.transaction_timeout_ms
            )
            self._accumulator.on_failure = self._transactions.fail
        self._time: Callable[[], float] = lambda: asyncio.get_running_loop().time()
        self._sender: Sender | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(flush=kind is None)

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Headers | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is acknowledged."""
        delivery = await self.send_soon(
            topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return await delivery

    async def send_soon(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Headers | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Wait only until there is room for the record; await what this answers, or ``flush``, to learn the rest."""
        if self._is_closed:
            raise ProducerClosed("the producer is closed")
        if self._transactions is not None:
            self._transactions.check_open()
        if isinstance(headers, Mapping):
            headers = tuple(headers.items())
        raw_key, raw_value = cast("tuple[bytes | None, bytes | None]", (key, value))
        if self._coder is not None:
            raw_key, raw_value = await self._coder.encode(topic, key, value)
        size_bytes = size_of(raw_key, raw_value, headers)
        if size_bytes > min(self.settings.max_request_size, self.settings.buffer_memory):
            raise RecordTooLarge(f"a record of {size_bytes} bytes is above max.request.size or buffer.memory")
        found = self.cluster.known_topic(topic)
        if found is None or not self._accumulator.has_room(size_bytes):
            found = await self._wait(topic, size_bytes)
        place = self._place(found, raw_key, partition, size_bytes)
        if timestamp_ms is None:
            timestamp_ms = self._clock.wall_ms()
        delivery, is_news = self._accumulator.append(
            TopicPartition(topic, place), (timestamp_ms, raw_key, raw_value, headers), size_bytes, now=self._time()
        )
        if is_news:
            self._started().wake()
            await asyncio.sleep(0)  # a caller in a tight loop lets the sender work once for every batch
        return delivery

    async def send_arrow(self, table: pyarrow.Table | pyarrow.RecordBatch, topic: str | None = None) -> int:
        """Send every row and wait until all are acknowledged; answers with their number.

        Columns: value, and if wanted key, timestamp, headers, partition and topic; others that a read gives (offset,
        timestampType) are not looked at. Rows with neither partition nor key go where there is room, many at a time.
        """
        rows = checked(table)
        if topic is None and "topic" not in rows.column_names:
            raise ValueError("name a topic, or have a column topic")
        sent: list[Batch] = []
        for name, part in [(topic, rows)] if topic is not None else by_value(rows, "topic"):
            sent += await self._send_rows(name, part)
        for batch in sent:
            await delivered(batch)
        return len(rows)

    async def _send_rows(self, topic: str, table: pyarrow.Table) -> list[Batch]:
        found = await self.cluster.topic(topic, auto_create=True, timeout_ms=self.settings.max_block_ms)
        names = table.column_names
        if "partition" not in names:
            count = len(found.partitions)
            chosen = partitions_of(table, lambda key: self._partitioner(topic, key, count))
            if chosen is None:
                return await self._send_slices(found, table, None)
            table = table.append_column("partition", chosen)
        sent: list[Batch] = []
        for partition, part in by_value(table, "partition"):
            sent += await self._send_slices(found, part, partition)
        return sent

    async def _send_slices(self, topic: TopicMetadata, table: pyarrow.Table, partition: int | None) -> list[Batch]:
        size_bytes_max = min(self.settings.max_request_size, max(self.settings.batch_size, ARROW_BATCH_BYTES))
        sent: list[Batch] = []
        for piece in slices(table, size_bytes_max // 2):
            if self._is_closed:
                raise ProducerClosed("the producer is closed")
            if self._transactions is not None:
                self._transactions.check_open()
            content = ArrowRows(piece, self._clock.wall_ms())
            if not self._accumulator.has_room(content.size_bytes):
                await self._wait(topic.name, content.size_bytes)
            place = TopicPartition(topic.name, self._place(topic, None, partition, content.size_bytes))
            sent.append(self._accumulator.append_whole(place, content, now=asyncio.get_running_loop().time()))
            self._started().wake()
            await asyncio.sleep(0)
        return sent

    async def flush(self) -> None:
        """Wait until all that was sent before is settled. A failure that nobody waited for is raised here."""
        sender = self._started()
        self._accumulator.flushes += 1
        try:
            sender.wake()
            limit = max((batch.order for batch in self._accumulator.unsettled), default=0)
            while pending := [batch.done for batch in self._accumulator.unsettled if batch.order <= limit]:
                await asyncio.wait(pending)
        finally:
            self._accumulator.flushes -= 1
        failure, self._accumulator.failure = self._accumulator.failure, None
        if failure is not None:
            raise failure

    # --- transactions ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """All that is sent in the block counts, or none of it: an exception aborts, the end of the block commits."""
        await self.begin_transaction()
        handled = self._transactional()
        try:
            yield self
        except BaseException:
            if handled.state in (State.OPEN, State.DOOMED):
                await self.abort_transaction()
            raise
        if handled.state is State.IDLE:
            return  # it was ended or handed over inside of the block
        try:
            await self.commit_transaction()
        except BarnabasError:
            if handled.state is State.DOOMED:
                await self.abort_transaction()
            raise

    async def begin_transaction(self) -> None:
        """Start one; the first takes the transactional id from whoever had it, and ends what that one left open."""
        transactions = self._transactional()
        await transactions.begin()
        self._accumulator.renew_identities(transactions.identity)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Make a group's offsets a part of the transaction; ``group`` is ``consumer.group_metadata``."""
        await self._transactional().send_offsets(offsets, group)

    async def commit_transaction(self) -> None:
        transactions = self._transactional()
        transactions.check_open()
        await self.flush()
        await transactions.end(commit=True)

    async def abort_transaction(self) -> None:
        """Throw away what was sent; records that have not left fail."""
        transactions = self._transactional()
        transactions.fail(TransactionAborted("the transaction was aborted"))
        self._accumulator.drop_unsent(TransactionAborted("the transaction was aborted"))
        while pending := [batch.done for batch in self._accumulator.unsettled]:
            await asyncio.wait(pending)
        self._accumulator.failure = None
        await transactions.end(commit=False)

    async def hand_over(self) -> OpenTransaction:
        """Write everything and leave the end to another process, which calls ``end_transaction`` with the answer.

        Whoever begins a transaction under the same id before that aborts this one.
        """
        transactions = self._transactional()
        transactions.check_open()
        await self.flush()
        return transactions.hand_over()

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """End what another process began and handed over; asking twice for the same end is no error."""
        await end_transaction(self.cluster, transaction, commit=commit)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise NoTransaction("transactions need transactional.id")
        return self._transactions

    async def close(self, *, flush: bool = True) -> None:
        if self._is_closed:
            return
        try:
            if self._transactions is not None and self._transactions.state in (State.OPEN, State.DOOMED):
                await self.abort_transaction()
            elif flush:
                await self.flush()
        finally:
            self._is_closed = True
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])
            for batch in self._accumulator.unsettled:
                batch.fail(ProducerClosed("the producer was closed before the record was acknowledged"))
            if self._owns_cluster:
                await self.cluster.close()

    @property
    def buffered_bytes(self) -> int:
        """What the records that are not settled yet take of ``buffer.memory``."""
        return self._accumulator.used_bytes

    def _started(self) -> Sender:
        if self._sender is None:
            self._time = asyncio.get_running_loop().time
            self._sender = Sender(self.cluster, self._accumulator, self.settings, self._transactions)
            self._running = asyncio.get_running_loop().create_task(self._sender.run(), name="producer")
        elif self._running is not None and self._running.done():
            self._running.result()  # our own mistake ended it: raise it here rather than wait for ever
        return self._sender

    async def _wait(self, topic: str, size_bytes: int) -> TopicMetadata:
        """The slow path: the topic is not known yet, or the memory is full."""
        limit_ms = self.settings.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                while True:
                    found = await self.cluster.topic(topic, auto_create=True, timeout_ms=limit_ms)
                    if self._accumulator.has_room(size_bytes):
                        return found
                    await self._started().wait_for_change()
        except TimeoutError:
            raise TimedOut(f"no room for another record of {topic} within max.block.ms={limit_ms}") from None

    def _place(self, topic: TopicMetadata, key: bytes | None, partition: int | None, size_bytes: int) -> int:
        count = len(topic.partitions)
        if partition is not None:
            if not 0 <= partition < count:
                raise ApiError(
                    errors.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic {topic.name!r} has partitions 0 to {count - 1}, and no {partition}.",
                )
            return partition
        if key is not None:
            return self._partitioner(topic.name, key, count)
        chosen = self._sticky.stay(topic.name, size_bytes)
        if chosen is not None and chosen < count:
            return chosen
        return self._sticky.choose(topic.name, topic.led_partitions or range(count), size_bytes=size_bytes)


def _coder(key: Serde[K] | None, value: Serde[V] | None) -> Coder[K, V] | None:
    """None for a producer of bytes, which then pays nothing."""
    if key is None and value is None:
        return None
    from barnabas.client.serdes.coder import Coder

    return Coder(key, value)
