"""Sends records: batched, compressed, retried without doubling or reordering them, acknowledged one by one.

``send`` waits until the record is where ``acks`` wants it; ``send_soon`` only until there is room for it, so that many
can be under way. Batches are the accumulator's, requests the sender's, the choice of a partition the partitioner's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic, Self, cast

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.errors import NoTransaction, ProducerClosed, TransactionAborted
from barnabas.client.group.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.partitions.partitioner import Partitioner
from barnabas.client.produce.accumulator import Accumulator
from barnabas.client.produce.arrow_rows import ArrowRows, by_value, checked, slices, with_partitions
from barnabas.client.produce.batch import Batch, Delivery, Headers, RecordMetadata, delivered, size_of
from barnabas.client.produce.intake import Intake, metadata_of
from barnabas.client.produce.partitioning import Partitioning
from barnabas.client.produce.sender import Sender
from barnabas.client.serdes.serde import K, Serde, V
from barnabas.client.settings.client import settled
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import OpenTransaction, State, Transactions, end_transaction
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.wire.record_builder import OpenBatches
from barnabas.world.world import World

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.serdes.coder import Coder

# Rows come many at a time, so batches may be large: as a broker lets them be unless it is told otherwise.
ARROW_BATCH_BYTES: Final = 1000 * 1024

__all__ = ["Delivery", "Producer", "RecordMetadata"]


class Producer(Generic[K, V]):
    """Used as ``async with Producer(settings) as producer``; leaving the block flushes.

    ``key`` and ``value`` are the serdes of what is sent; without them keys and values are bytes. ``partitioner`` is a
    function of topic, key and partition count, which is asked for records that have a key; or one of topic, key, value
    and count, which is asked for every record and may answer None; or a ``RoundRobin``. Both see bytes.
    """

    def __init__(
        self,
        settings: ProducerSettings | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        cluster: Cluster | None = None,
        partitioner: Partitioner | None = None,
        world: World | None = None,
    ) -> None:
        self.settings = settled(ProducerSettings, settings)
        self.cluster = cluster or Cluster(self.settings, world=world)
        self._owns_cluster = cluster is None
        self._clock = self.cluster.world.clock
        self._partitioning = Partitioning(self.settings, partitioner)
        self._coder = _coder(key, value)
        self._accumulator = Accumulator(
            batch_bytes=min(self.settings.batch_size, self.settings.max_request_size, self.settings.buffer_memory),
            linger=self.settings.linger_ms / 1000,
            delivery_timeout=self.settings.delivery_timeout_ms / 1000,
            memory_bytes_max=self.settings.buffer_memory,
            is_idempotent=self.settings.is_idempotent,
        )
        self.intake = Intake(self.cluster, self.settings, self._accumulator, self._partitioning)
        self._transactions: Transactions | None = None
        if self.settings.transactional_id is not None:
            self._transactions = Transactions(
                self.cluster, self.settings.transactional_id, timeout_ms=self.settings.transaction_timeout_ms
            )
            self._accumulator.on_failure = self._transactions.fail
        self.is_plain = self._coder is None and self._transactions is None and not self._partitioning.is_asked_always
        straight = OpenBatches(Delivery, self._clock.wall_ns)
        if self.is_plain:
            self.intake.straight = straight
        self._straight = straight.promise
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
        delivery: Delivery | None = self._straight(topic, value, key, headers, partition, timestamp_ms)
        if delivery is not None:
            return delivery
        delivery = await self._send_slowly(topic, value, key, headers, partition, timestamp_ms)
        if self.intake.has_news:
            await self.tell_sender(topic)
        return delivery

    async def _send_slowly(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        headers: Headers | Mapping[str, bytes | None],
        partition: int | None,
        timestamp_ms: int | None,
    ) -> Delivery:
        if self._is_closed:
            raise ProducerClosed("the producer is closed")
        if self._transactions is not None:
            self._transactions.check_open()
        pairs = tuple(headers.items()) if isinstance(headers, Mapping) else headers
        raw_key, raw_value = cast("tuple[bytes | None, bytes | None]", (key, value))
        if self._coder is not None:
            raw_key, raw_value = await self._coder.encode(topic, key, value)
            if of_serdes := self._coder.headers(topic, key, value):
                pairs = (*pairs, *of_serdes)
        intake = self.intake
        while True:
            if partition is None and self._partitioning.is_asked_always:
                partition = intake.ask(topic, raw_key, raw_value)  # once, however long there is no room
            delivery = intake.quick(topic, raw_key, raw_value, pairs, partition, timestamp_ms)
            if delivery is not None:
                return delivery
            await intake.wait(topic, size_of(raw_key, raw_value, pairs), self._started().wait_for_change)

    async def tell_sender(self, topic: str) -> None:
        """A batch was opened: the sender looks, and the caller, who may be in a tight loop, lets it."""
        self.intake.has_news = False
        self._started().wake()
        if self.cluster.known_topic(topic) is None:
            self.cluster.invalidate()  # it has aged: the next record asks
        await asyncio.sleep(0)

    async def send_many(self, topic: str, records: Iterable[tuple[K | None, V | None]]) -> list[RecordMetadata]:
        """Send pairs of key and value, wait until all are acknowledged, and say where each went."""
        pairs = list(records)
        runs: list[tuple[Batch, int, int]] = []
        index = 0
        while index < len(pairs):
            run = None
            if self.is_plain:
                run = self.intake.quick_run(topic, cast("list[tuple[bytes | None, bytes | None]]", pairs), index)
            if run is None:
                key, value = pairs[index]
                batch, first = await self.send_soon(topic, value, key=key)
                run = batch, first, 1
            elif self.intake.has_news:
                await self.tell_sender(topic)
            runs.append(run)
            index += run[2]
        for batch in dict.fromkeys(batch for batch, _, _ in runs):
            await delivered(batch)
        return [metadata for run in runs for metadata in metadata_of(*run)]

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
        is_free = "partition" not in table.column_names or table.column("partition").null_count == len(table)
        if is_free and len(found.partitions) == 1:
            return await self._send_slices(found, table, 0)  # rows with and without keys stay in order
        if "partition" not in table.column_names:
            chosen = self._partitioning.of_rows(found, table)
            if chosen is None:
                return await self._send_slices(found, table, None)
            table = table.append_column("partition", chosen)
        elif table.column("partition").null_count:
            table = with_partitions(table, self._partitioning.of_rows(found, table))
        sent: list[Batch] = []
        for partition, part in by_value(table, "partition"):
            sent += await self._send_slices(found, part, partition)
        return sent

    async def _send_slices(self, topic: TopicMetadata, table: pyarrow.Table, partition: int | None) -> list[Batch]:
        size_bytes_max = min(self.settings.max_request_size, max(self.settings.batch_size, ARROW_BATCH_BYTES))
        sent: list[Batch] = []
        for piece in slices(table, size_bytes_max):
            if self._is_closed:
                raise ProducerClosed("the producer is closed")
            if self._transactions is not None:
                self._transactions.check_open()
            content = ArrowRows(piece, self._clock.wall_ms())
            if not self._accumulator.has_room(content.size_bytes):
                await self.intake.wait(topic.name, content.size_bytes, self._started().wait_for_change)
            if partition is None:
                chosen = self.intake.choose(topic, content.size_bytes)
            else:
                chosen = self.intake.place(topic, None, partition)
            place = TopicPartition(topic.name, chosen)
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
        """Flush and commit. Whoever does not hear how it went, being too impatient or cancelled, asks again."""
        transactions = self._transactional()
        transactions.check_end(commit=True)
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
            self._sender = Sender(self.cluster, self._accumulator, self.settings, self._transactions)
            self._running = asyncio.get_running_loop().create_task(self._sender.run(), name="producer")
        elif self._running is not None and self._running.done():
            self._running.result()  # our own mistake ended it: raise it here rather than wait for ever
        return self._sender


def _coder(key: Serde[K] | None, value: Serde[V] | None) -> Coder[K, V] | None:
    """None for a producer of bytes, which then pays nothing."""
    if key is None and value is None:
        return None
    from barnabas.client.serdes.coder import Coder

    return Coder(key, value)
