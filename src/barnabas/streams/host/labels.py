"""Numbers that stand for tasks in Spark's shuffle, chosen so that Spark spreads the tasks evenly.

Spark puts a group into a partition by a hash of the group's value. Few consecutive numbers fall unevenly: 0 to 3 over
two partitions go 3 to 1. A label is therefore the task's number plus a multiple of the number of tasks, the smallest
that Spark's hash puts where the task belongs.
"""

from __future__ import annotations

from typing import Final

__all__ = ["labels", "partition_of"]

SEED: Final = 42  # of the hash in Spark's HashPartitioning
_MASK: Final = 0xFFFFFFFF


def labels(tasks: int, partitions: int) -> tuple[int, ...]:
    """The labels of tasks 0 to ``tasks - 1``: task n falls into partition ``n % partitions``."""
    found = []
    for task in range(tasks):
        label = task
        while partition_of(label, partitions) != task % partitions:
            label += tasks
        found.append(label)
    return tuple(found)


def partition_of(value: int, partitions: int) -> int:
    """The partition into which Spark puts a row by an int column: pmod(murmur3(value), partitions)."""
    return _murmur3(value) % partitions


def _murmur3(value: int) -> int:
    """Murmur3 of one 32-bit number, as a signed number."""
    mixed = value * 0xCC9E2D51 & _MASK
    mixed = _rotate(mixed, 15) * 0x1B873593 & _MASK
    result = (_rotate(SEED ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    result ^= 4  # the number of bytes
    result = (result ^ result >> 16) * 0x85EBCA6B & _MASK
    result = (result ^ result >> 13) * 0xC2B2AE35 & _MASK
    result ^= result >> 16
    return result - (1 << 32) if result >> 31 else result


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
