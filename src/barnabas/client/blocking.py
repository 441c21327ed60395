"""The clients without async: the same names and arguments, each call waits for its answer.

A loop in a thread of its own does the work; a call crosses over to it once, for a whole poll or batch, never for a
record. Ctrl-C ends any wait at once, and the call that it interrupted is given up. Not part of the simulation.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from barnabas.client import admin, consumer, producer
from barnabas.client.batch import Headers, RecordMetadata
from barnabas.client.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.consumer_settings import ConsumerSettings
from barnabas.client.cursor import ConsumerRecord
from barnabas.client.group import RebalanceListener
from barnabas.client.offsets import EARLIEST, Start
from barnabas.client.producer_settings import ProducerSettings
from barnabas.client.settings import Settings
from barnabas.client.transactions import OpenTransaction
from barnabas.model.ids import TopicPartition
from barnabas.wire.columns import schema

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

# A wait without an end could not be interrupted everywhere; one that is looked at twice a second can.
WAIT_SECONDS: Final = 0.5
CANCEL_SECONDS_MAX: Final = 5.0


class LoopThread:
    """A loop that runs until it is stopped, and the one way to have something done there."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="barnabas-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                try:
                    return future.result(WAIT_SECONDS)
                except concurrent.futures.TimeoutError:
                    if future.done():
                        raise  # it is the call's own
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def _call(self, function: Callable[[], T]) -> T:
        return function()

    def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the loop's thread: what it touches belongs to that thread."""
        return self.run(self._call(function))

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CANCEL_SECONDS_MAX)
            self.loop.close()


class Producer:
    """As :class:`barnabas.client.producer.Producer`, waiting."""

    def __init__(self, settings: ProducerSettings | None = None, **more: Any) -> None:
        self._thread = LoopThread()
        self._inner = self._thread.call(lambda: producer.Producer(settings, **more))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(flush=kind is None)

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        headers: Headers | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        return self._thread.run(
            self._inner.send(topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms)
        )

    def send_many(self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]) -> list[RecordMetadata]:
        """Send pairs of key and value, and wait for all of them."""
        pairs = list(records)

        async def work() -> list[RecordMetadata]:
            deliveries = [await self._inner.send_soon(topic, value, key=key) for key, value in pairs]
            return [await delivery for delivery in deliveries]

        return self._thread.run(work())

    def send_arrow(self, table: pyarrow.Table | pyarrow.RecordBatch, topic: str | None = None) -> int:
        return self._thread.run(self._inner.send_arrow(table, topic))

    def flush(self) -> None:
        self._thread.run(self._inner.flush())

    @contextmanager
    def transaction(self) -> Generator[Self]:
        manager = self._inner.transaction()
        self._thread.run(manager.__aenter__())
        try:
            yield self
        except BaseException as error:
            self._thread.run(manager.__aexit__(type(error), error, error.__traceback__))
            raise
        self._thread.run(manager.__aexit__(None, None, None))

    def send_offsets(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata) -> None:
        self._thread.run(self._inner.send_offsets(offsets, group))

    def hand_over(self) -> OpenTransaction:
        return self._thread.run(self._inner.hand_over())

    def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        self._thread.run(self._inner.end_transaction(transaction, commit=commit))

    def close(self, *, flush: bool = True) -> None:
        try:
            self._thread.run(self._inner.close(flush=flush))
        finally:
            self._thread.stop()


class Consumer:
    """As :class:`barnabas.client.consumer.Consumer`, waiting. Listeners run on the client's own thread."""

    def __init__(self, settings: ConsumerSettings | None = None, **more: Any) -> None:
        self._thread = LoopThread()
        self._inner = self._thread.call(lambda: consumer.Consumer(settings, **more))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(commit=kind is None)

    def subscribe(
        self, topics: str | Iterable[str] | re.Pattern[str], *, listener: RebalanceListener | None = None
    ) -> None:
        self._thread.run(self._inner.subscribe(topics, listener=listener))

    def unsubscribe(self) -> None:
        self._thread.run(self._inner.unsubscribe())

    def assign(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Start],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
        until_end: bool = False,
    ) -> None:
        self._thread.run(self._inner.assign(partitions, ends=ends, until_end=until_end))

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(lambda: self._inner.assignment)

    def poll(self, count_max: int | None = None, *, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        return self._thread.run(self._inner.poll(count_max, timeout_ms=timeout_ms))

    def poll_arrow(self, *, timeout_ms: int | None = None, with_headers: bool = False) -> pyarrow.Table:
        return self._thread.run(self._inner.poll_arrow(timeout_ms=timeout_ms, with_headers=with_headers))

    def batches(self, count_max: int | None = None, *, timeout_ms: int | None = None) -> Iterator[list[ConsumerRecord]]:
        while True:
            records = self.poll(count_max, timeout_ms=timeout_ms)
            if not records and self._inner.is_at_end:
                return
            yield records

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """One by one; the loop is asked once for a whole poll. What was not reached is not counted as read."""
        while True:
            records = self.poll()
            if not records:
                return
            rest = iter(records)
            try:
                yield from rest
            finally:
                self._give_back(list(rest))

    def _give_back(self, records: list[ConsumerRecord]) -> None:
        if records:
            self._thread.call(lambda: self._inner.give_back(records))

    def position(self, partition: TopicPartition) -> int:
        return self._thread.call(lambda: self._inner.position(partition))

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._thread.call(lambda: self._inner.high_watermark(partition))

    def lag(self, partition: TopicPartition) -> int | None:
        return self._thread.call(lambda: self._inner.lag(partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._thread.call(lambda: self._inner.seek(partition, offset))

    def seek_to(self, starts: Mapping[TopicPartition, Start]) -> None:
        self._thread.run(self._inner.seek_to(starts))

    def pause(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.resume(*partitions))

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        self._thread.run(self._inner.commit(offsets, timeout_ms=timeout_ms))

    def committed(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._thread.run(self._inner.committed(partitions))

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(self._inner.beginning_offsets(partitions))

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(self._inner.end_offsets(partitions))

    @property
    def group_metadata(self) -> GroupMetadata:
        return self._thread.call(lambda: self._inner.group_metadata)

    def close(self, *, commit: bool = True) -> None:
        try:
            self._thread.run(self._inner.close(commit=commit))
        finally:
            self._thread.stop()


class Admin:
    """As :class:`barnabas.client.admin.Admin`: every method of it, waiting."""

    def __init__(self, settings: Settings | None = None, **more: Any) -> None:
        self._thread = LoopThread()
        self._inner = self._thread.call(lambda: admin.Admin(settings, **more))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def waiting(*arguments: Any, **named: Any) -> Any:
            return self._thread.run(method(*arguments, **named))

        return waiting

    def close(self) -> None:
        try:
            self._thread.run(self._inner.close())
        finally:
            self._thread.stop()


def read(
    topic: str,
    *,
    bootstrap_servers: str | Sequence[str] = "127.0.0.1:9092",
    start: Start = EARLIEST,
    ends: Mapping[TopicPartition, int] | None = None,
    with_headers: bool = False,
    **settings: Any,
) -> pyarrow.Table:
    """A topic as an Arrow table, from a start to where it ends now: key, value, topic, partition, offset, and so on.

    ``settings`` are those of a consumer, as ``isolation_level="read_committed"``.
    """
    import pyarrow as pa

    servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
    told = ConsumerSettings.of({"bootstrap.servers": servers, **settings})

    async def work() -> list[pyarrow.Table]:
        async with consumer.Consumer(told) as reader:
            found = await reader.cluster.topic(topic)
            places = [TopicPartition(topic, index) for index in range(len(found.partitions))]
            await reader.assign(dict.fromkeys(places, start), ends=ends, until_end=True)
            tables = [schema(with_headers=with_headers).empty_table()]
            while not reader.is_at_end:
                tables.append(await reader.poll_arrow(with_headers=with_headers))
            return tables

    thread = LoopThread()
    try:
        return pa.concat_tables(thread.run(work()))
    finally:
        thread.stop()
