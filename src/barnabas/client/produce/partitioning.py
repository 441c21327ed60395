"""Who is asked for a record's partition: what a producer was given, or what its settings name, and what they answer.

A function of one's own may say anything and fail in any way; what comes of it is checked here, once. The intake asks
for each record, ``send_arrow`` for a table of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Final, cast

from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.errors import CannotPartition
from barnabas.client.partitions.partitioner import (
    NAMES,
    KeyPartitioner,
    Partitioner,
    RecordPartitioner,
    RoundRobin,
    of_key,
)
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.settings import InvalidSetting

if TYPE_CHECKING:
    import pyarrow

RECORD_ARGUMENTS: Final = 4


class Partitioning:
    """``by_key`` is asked for what has a key, if there is one. Where ``is_asked_always``, ``choose`` comes first."""

    def __init__(self, settings: ProducerSettings, given: Partitioner | None) -> None:
        if given is not None and settings.partitioner_class:
            raise InvalidSetting("a partitioner was given, and partitioner.class names another: leave one of them out")
        if given is None:
            given = NAMES[settings.partitioner_class]() if settings.partitioner_class else _default(settings)
        self.by_key: KeyPartitioner | None = None
        self._of_record: RecordPartitioner | None = None
        self._turns: RoundRobin | None = None
        if isinstance(given, RoundRobin):
            self._turns = given
        elif given is not None and _is_of_records(given):
            self._of_record = cast("RecordPartitioner", given)
            self.by_key = of_key
        elif given is not None:
            self.by_key = cast("KeyPartitioner", given)
        self.is_asked_always = self._turns is not None or self._of_record is not None

    def choose(self, topic: TopicMetadata, key: bytes | None, value: bytes | None) -> int | None:
        """The partition of any record; None where nobody minds."""
        if self._turns is not None:
            return self._turns.choose(topic.name, usable(topic))
        assert self._of_record is not None
        count = len(topic.partitions)
        try:
            chosen = self._of_record(topic.name, key, value, count)
        except Exception as error:
            raise _failed(topic.name, error) from error
        return None if chosen is None else _checked(topic.name, chosen, count)

    def of_key(self, topic: TopicMetadata, key: bytes) -> int:
        assert self.by_key is not None
        count = len(topic.partitions)
        if self.by_key is of_key:
            return of_key(topic.name, key, count)
        try:
            chosen = self.by_key(topic.name, key, count)
        except Exception as error:
            raise _failed(topic.name, error) from error
        return _checked(topic.name, chosen, count)

    def of_rows(self, topic: TopicMetadata, table: pyarrow.Table) -> pyarrow.Array | None:
        """The partition of every row, null where nobody minds; None if that is so for all."""
        from barnabas.client.produce.arrow_rows import partitions_by_murmur2, partitions_of, partitions_of_rows

        if self.is_asked_always:

            def chosen(key: bytes | None, value: bytes | None) -> int | None:
                found = self.choose(topic, key, value)
                return self.of_key(topic, key) if found is None and key is not None else found

            return partitions_of_rows(table, chosen)
        if self.by_key is None:
            return None
        if self.by_key is of_key:
            return partitions_by_murmur2(table, len(topic.partitions))
        return partitions_of(table, lambda key: self.of_key(topic, key))


def usable(topic: TopicMetadata) -> Sequence[int]:
    """The partitions that have a leader; all of them if none has."""
    return topic.led_partitions or range(len(topic.partitions))


def _default(settings: ProducerSettings) -> Partitioner | None:
    return None if settings.partitioner_ignore_keys else of_key


def _is_of_records(function: object) -> bool:
    """Whether it takes topic, key, value and count, and not only topic, key and count."""
    from inspect import Parameter, signature

    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # what is written in C may not say
        return False
    return sum(each.kind in places and each.default is Parameter.empty for each in parameters) >= RECORD_ARGUMENTS


def _checked(topic: str, chosen: int, count: int) -> int:
    place = index(chosen) if hasattr(chosen, "__index__") else -1  # NumPy's numbers are numbers too
    if not 0 <= place < count:
        raise CannotPartition(f"{topic}: the partitioner said {chosen!r}; there are partitions 0 to {count - 1}")
    return place


def _failed(topic: str, error: Exception) -> CannotPartition:
    return CannotPartition(f"{topic}: the partitioner failed: {type(error).__name__}: {error}")
