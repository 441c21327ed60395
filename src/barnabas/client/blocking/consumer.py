"""The consumer without async: the same names and arguments, each call waits for its answer.

The loop is asked once for a whole poll, never for a record. Users import it from ``blocking.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self

from barnabas.client import consumer
from barnabas.client.blocking.loop import LoopThread
from barnabas.client.group.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.group.consumer_group import RebalanceListener
from barnabas.client.offsets import ListedOffset, Start
from barnabas.client.record import ConsumerRecord
from barnabas.client.serdes.serde import K, Serde, V
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.scan.needles import Probe


class Consumer(Generic[K, V]):
    """As :class:`barnabas.client.consumer.Consumer`, waiting. Listeners run on the client's own thread."""

    def __init__(
        self,
        settings: ConsumerSettings | None = None,
        *,
        key: Serde[K] | None = None,
        value: Serde[V] | None = None,
        **more: Any,
    ) -> None:
        self._thread = LoopThread()
        self._inner: consumer.Consumer[K, V] = self._thread.call(
            lambda: consumer.Consumer(settings, key=key, value=value, **more)
        )

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
        probe: Probe | None = None,
    ) -> None:
        self._thread.run(self._inner.assign(partitions, ends=ends, until_end=until_end, probe=probe))

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(lambda: self._inner.assignment)

    def poll(self, count_max: int | None = None, *, timeout_ms: int | None = None) -> list[ConsumerRecord[K, V]]:
        return self._thread.run(self._inner.poll(count_max, timeout_ms=timeout_ms))

    def poll_arrow(self, *, timeout_ms: int | None = None, with_headers: bool = False) -> pyarrow.Table:
        return self._thread.run(self._inner.poll_arrow(timeout_ms=timeout_ms, with_headers=with_headers))

    def batches(
        self, count_max: int | None = None, *, timeout_ms: int | None = None
    ) -> Iterator[list[ConsumerRecord[K, V]]]:
        while True:
            records = self.poll(count_max, timeout_ms=timeout_ms)
            if not records and self._inner.is_at_end:
                return
            yield records

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
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

    def _give_back(self, records: list[ConsumerRecord[K, V]]) -> None:
        if records:
            self._thread.call(lambda: self._inner.give_back(records))

    def position(self, partition: TopicPartition) -> int:
        return self._thread.call(lambda: self._inner.position(partition))

    def high_watermark(self, partition: TopicPartition) -> int:
        return self._thread.call(lambda: self._inner.high_watermark(partition))

    def lag(self, partition: TopicPartition) -> int | None:
        return self._thread.call(lambda: self._inner.lag(partition))

    def epoch_before(self, partition: TopicPartition, offset: int) -> int:
        return self._thread.call(lambda: self._inner.epoch_before(partition, offset))

    @property
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.call(lambda: self._inner.positions)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
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

    def offsets_for_times(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | None]:
        return self._thread.run(self._inner.offsets_for_times(timestamps))

    @property
    def paused(self) -> list[TopicPartition]:
        return self._thread.call(lambda: self._inner.paused)

    @property
    def is_at_end(self) -> bool:
        return self._thread.call(lambda: self._inner.is_at_end)

    def commit_soon(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Start to store positions as they are now, and do not wait."""
        self._thread.call(lambda: self._inner.commit_soon(offsets))

    @property
    def group_metadata(self) -> GroupMetadata:
        return self._thread.call(lambda: self._inner.group_metadata)

    def close(self, *, commit: bool = True) -> None:
        try:
            self._thread.run(self._inner.close(commit=commit))
        finally:
            self._thread.stop()
