"""Which partition a record goes to: murmur2 of the key as Java's client has it, otherwise one partition for a while.

Also Kafka's other partitioners and librdkafka's, by the names that configurations have for them. Pure but for the
entropy that picks where a keyless run goes next; ``partitioning.py`` decides which of them is asked for what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final, TypeAlias
from zlib import crc32

from barnabas.wire.key_hash import murmur2
from barnabas.world.entropy import Entropy

__all__ = ["NAMES", "KeyPartitioner", "Partitioner", "RecordPartitioner", "RoundRobin", "Sticky", "murmur2", "of_key"]

# Topic, key, partition count -> partition. It is asked for records that have a key.
KeyPartitioner: TypeAlias = Callable[[str, bytes, int], int]
# Topic, key, value, partition count -> partition, or None to leave it to the producer. It is asked for every record.
RecordPartitioner: TypeAlias = Callable[[str, bytes | None, bytes | None, int], int | None]


def of_key(topic: str, key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def of_key_by_crc32(topic: str, key: bytes, partition_count: int) -> int:
    """As librdkafka has it unless it is told otherwise."""
    return crc32(key) % partition_count


def of_any_key(topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int:
    """The same for no key as for one of no bytes."""
    return of_key(topic, key or b"", partition_count)


def of_any_key_by_crc32(topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int:
    return of_key_by_crc32(topic, key or b"", partition_count)


class RoundRobin:
    """The next of the partitions that have a leader, for every record of a topic, whether it has a key or not."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, topic: str, partitions: Sequence[int]) -> int:
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        return partitions[turn % len(partitions)]


Partitioner: TypeAlias = KeyPartitioner | RecordPartitioner | RoundRobin

# What partitioner.class may say: Kafka's classes, and librdkafka's words for its ``partitioner``. Each makes a
# partitioner, or None if keys are not looked at and records stay with a partition for a while.
MURMUR2_RANDOM: Final = "murmur2_random"
NAMES: Final[Mapping[str, Callable[[], Partitioner | None]]] = MappingProxyType(
    {
        MURMUR2_RANDOM: lambda: of_key,
        "murmur2": lambda: of_any_key,
        "consistent_random": lambda: of_key_by_crc32,
        "consistent": lambda: of_any_key_by_crc32,
        "random": lambda: None,
        "round_robin": RoundRobin,
        "org.apache.kafka.clients.producer.RoundRobinPartitioner": RoundRobin,
        "org.apache.kafka.clients.producer.UniformStickyPartitioner": lambda: None,
        "org.apache.kafka.clients.producer.internals.DefaultPartitioner": lambda: of_key,
    }
)


class Sticky:
    """Records without a key stay with a partition until it got a batch's worth, then move on (KIP-794)."""

    __slots__ = ("_batch_bytes", "_chosen", "_entropy", "_filled_bytes")

    def __init__(self, entropy: Entropy, *, batch_bytes: int) -> None:
        self._entropy = entropy
        self._batch_bytes = batch_bytes
        self._chosen: dict[str, int] = {}
        self._filled_bytes: dict[str, int] = {}

    def stay(self, topic: str, size_bytes: int) -> int | None:
        """The partition of the last record, while it has not got its batch's worth; None when it is time to choose."""
        filled = self._filled_bytes.get(topic, self._batch_bytes)
        if filled >= self._batch_bytes:
            return None
        self._filled_bytes[topic] = filled + size_bytes
        return self._chosen[topic]

    def choose(
        self, topic: str, partitions: Sequence[int], *, size_bytes: int, loads: Sequence[int] | None = None
    ) -> int:
        """One of the partitions that have a leader; ``size_bytes`` is what the record adds to it.

        ``loads`` are the batches that each of them has waiting already: the fewer, the likelier it is chosen.
        """
        filled = self._filled_bytes.get(topic, 0)
        chosen = self._chosen.get(topic)
        if chosen is None or filled >= self._batch_bytes or chosen not in partitions:
            if loads is not None and len(set(loads)) > 1:
                chosen = self._lighter(partitions, loads)
            else:
                others = [partition for partition in partitions if partition != chosen] or partitions
                chosen = others[self._entropy.below(len(others))]
            self._chosen[topic] = chosen
            filled = 0
        self._filled_bytes[topic] = filled + size_bytes
        return chosen

    def _lighter(self, partitions: Sequence[int], loads: Sequence[int]) -> int:
        above = max(loads) + 1
        ends = list(accumulate(above - load for load in loads))
        drawn = self._entropy.below(ends[-1])
        return next(partition for partition, end in zip(partitions, ends, strict=True) if drawn < end)
