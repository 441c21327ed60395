"""Conditions of a query that say what need not be read: topic, partition and offset exactly, timestamp from below.

Pure but for the offset of a time. Records may be out of order in time, so that Spark looks at timestamps again; and
without switching it on in Spark (``spark.sql.python.filterPushdown.enabled``) nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from pyspark.sql import datasource
from pyspark.sql.datasource import Filter

from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.offsets import Range

V = TypeVar("V", str, int)


@dataclass(frozen=True)
class Bounds:
    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_end: int | None = None
    time_ms_min: int | None = None
    untouched: tuple[Filter, ...] = field(default=(), compare=False)  # those that Spark must look at itself

    def has(self, place: TopicPartition) -> bool:
        return (self.topics is None or place.topic in self.topics) and (
            self.partitions is None or place.partition in self.partitions
        )

    def within(self, whole: Range) -> Range:
        start = max(whole.start, self.offset_min)
        end = whole.end if self.offset_end is None else min(whole.end, self.offset_end)
        return Range(whole.place, start, max(start, end))

    def taking(self, condition: Filter) -> Bounds:
        """These bounds with one more condition, or with the condition among the untouched."""
        narrowed = self._narrowed(condition)
        return replace(self, untouched=(*self.untouched, condition)) if narrowed is None else narrowed

    def _narrowed(self, condition: Filter) -> Bounds | None:
        attribute = getattr(condition, "attribute", None)
        if attribute is None or len(attribute) != 1:
            return None
        take = _COLUMNS.get(attribute[0])
        return None if take is None else take(self, condition)


def _values(condition: Filter, kind: type[V]) -> frozenset[V] | None:
    if isinstance(condition, datasource.EqualTo | datasource.EqualNullSafe):
        values = (condition.value,)
    elif isinstance(condition, datasource.In):
        values = condition.value
    else:
        return None
    return frozenset(values) if all(isinstance(value, kind) for value in values) else None


def _topic(bounds: Bounds, condition: Filter) -> Bounds | None:
    values = _values(condition, str)
    if values is None:
        return None
    return replace(bounds, topics=values if bounds.topics is None else bounds.topics & values)


def _partition(bounds: Bounds, condition: Filter) -> Bounds | None:
    values = _values(condition, int)
    if values is None:
        return None
    return replace(bounds, partitions=values if bounds.partitions is None else bounds.partitions & values)


def _offset(bounds: Bounds, condition: Filter) -> Bounds | None:
    value = getattr(condition, "value", None)
    if not isinstance(value, int):
        return None
    low: int | None = None
    end: int | None = None
    if isinstance(condition, datasource.EqualTo | datasource.EqualNullSafe):
        low, end = value, value + 1
    elif isinstance(condition, datasource.GreaterThan):
        low = value + 1
    elif isinstance(condition, datasource.GreaterThanOrEqual):
        low = value
    elif isinstance(condition, datasource.LessThan):
        end = value
    elif isinstance(condition, datasource.LessThanOrEqual):
        end = value + 1
    else:
        return None
    ends = [each for each in (end, bounds.offset_end) if each is not None]
    return replace(bounds, offset_min=max(bounds.offset_min, low or 0), offset_end=min(ends, default=None))


def _timestamp(bounds: Bounds, condition: Filter) -> Bounds | None:
    if not isinstance(
        condition, datasource.EqualTo | datasource.GreaterThan | datasource.GreaterThanOrEqual
    ) or not isinstance(condition.value, datetime):
        return None
    moment = condition.value if condition.value.tzinfo else condition.value.replace(tzinfo=UTC)
    time_ms = int(moment.timestamp() * 1000)
    later = max(time_ms, bounds.time_ms_min or 0)
    return replace(bounds, time_ms_min=later, untouched=(*bounds.untouched, condition))


_COLUMNS: dict[str, Callable[[Bounds, Filter], Bounds | None]] = {
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
}
