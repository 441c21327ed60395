"""The producer without async: the same names and arguments, each call waits for its answer.

Records cross over to the loop's thread many at a time. Users import it from ``blocking.py``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self

from barnabas.client import producer
from barnabas.client.blocking.loop import LoopThread
from barnabas.client.blocking.outbox import Outbox, Promise
from barnabas.client.group.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.produce.batch import Headers, RecordMetadata
from barnabas.client.serdes.serde import K, Serde, V
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import OpenTransaction
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow


class Producer(Generic[K, V]):
    """As :class:`barnabas.client.producer.Producer`, waiting."""

    def __init__(
        self,
        settings: ProducerSettings | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        **more: Any,
    ) -> None:
        self._thread = LoopThread()
        self._inner: producer.Producer[K, V] = self._thread.call(
            lambda: producer.Producer(settings, key=key, value=value, **more)
        )
        self._outbox: Outbox[K, V] = Outbox(self._thread, self._inner)
        self._straight = self._outbox.straight.promise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(flush=kind is None)

    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Headers | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        self._carry()
        return self._thread.run(
            self._inner.send(topic, value, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms)
        )

    def send_soon(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: Headers | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Promise:
        """Wait only until there is room for the record; ``result`` of what this answers, or ``flush``, has the rest."""
        promise: Promise | None = self._straight(topic, value, key, headers, partition, timestamp_ms)
        if promise is None:
            promise = self._outbox.put(topic, value, key, headers, partition, timestamp_ms)
        return promise

    def send_many(self, topic: str, records: Iterable[tuple[K | None, V | None]]) -> list[RecordMetadata]:
        """Send pairs of key and value, and wait for all of them."""
        self._carry()
        return self._thread.run(self._inner.send_many(topic, list(records)))

    def send_arrow(self, table: pyarrow.Table | pyarrow.RecordBatch, topic: str | None = None) -> int:
        self._carry()
        return self._thread.run(self._inner.send_arrow(table, topic))

    def _carry(self) -> None:
        """What was sent before goes before."""
        if self._outbox.is_busy:
            self._thread.run(self._outbox.carried())

    def flush(self) -> None:
        self._thread.run(self._outbox.empty())
        self._thread.run(self._inner.flush())

    @contextmanager
    def transaction(self) -> Generator[Self]:
        manager = self._inner.transaction()
        self._thread.run(manager.__aenter__())
        try:
            yield self
            self._thread.run(self._outbox.empty())
        except BaseException as error:
            self._thread.run(manager.__aexit__(type(error), error, error.__traceback__))
            raise
        self._thread.run(manager.__aexit__(None, None, None))

    def send_offsets(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group: GroupMetadata) -> None:
        self._thread.run(self._inner.send_offsets(offsets, group))

    def hand_over(self) -> OpenTransaction:
        self._thread.run(self._outbox.empty())
        return self._thread.run(self._inner.hand_over())

    def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        self._thread.run(self._inner.end_transaction(transaction, commit=commit))

    @property
    def buffered_bytes(self) -> int:
        return self._thread.call(lambda: self._inner.buffered_bytes)

    def close(self, *, flush: bool = True) -> None:
        try:
            if flush:
                self._thread.run(self._outbox.empty())
            self._thread.run(self._inner.close(flush=flush))
        finally:
            self._thread.stop()
