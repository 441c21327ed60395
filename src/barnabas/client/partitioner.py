"""Which partition a record goes to: murmur2 of the key as Java's client has it, otherwise one partition for a while.

Pure but for the entropy that picks where a keyless run goes next. Any function of the same shape may take the place
of :func:`of_key`; the producer asks :class:`Sticky` only for records without a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from barnabas.wire.key_hash import murmur2
from barnabas.world.entropy import Entropy

__all__ = ["Partitioner", "Sticky", "murmur2", "of_key"]

Partitioner: TypeAlias = Callable[[str, bytes, int], int]  # topic, key, partition count -> partition


def of_key(topic: str, key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


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

    def choose(self, topic: str, partitions: Sequence[int], *, size_bytes: int) -> int:
        """One of the partitions that have a leader; ``size_bytes`` is what the record adds to it."""
        filled = self._filled_bytes.get(topic, 0)
        chosen = self._chosen.get(topic)
        if chosen is None or filled >= self._batch_bytes or chosen not in partitions:
            others = [partition for partition in partitions if partition != chosen] or partitions
            chosen = others[self._entropy.below(len(others))]
            self._chosen[topic] = chosen
            filled = 0
        self._filled_bytes[topic] = filled + size_bytes
        return chosen
