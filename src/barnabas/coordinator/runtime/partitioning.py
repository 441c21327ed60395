"""Which partition of a coordinator's topic a group or a transactional id belongs to: Java's hash of its name.

Every broker and every one of Kafka's tools must come to the same answer, so nothing here may ever change.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_HASH_MASK: Final = 0xFFFFFFFF
_INT_MIN: Final = 0x80000000
_REMEMBERED_MAX: Final = 8192
_REMEMBERED_LETTERS_MAX: Final = 128  # strangers choose the names


def partition_of(key: str, partition_count: int) -> int:
    """Java's ``String.hashCode``, its absolute value (0 for the one that has none), modulo the partitions."""
    # Every request of a group or a transaction asks, and to look at each letter takes longer than most of what follows.
    return (_remembered if len(key) <= _REMEMBERED_LETTERS_MAX else _partition_of)(key, partition_count)


def _partition_of(key: str, partition_count: int) -> int:
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _HASH_MASK
    if value == _INT_MIN:
        return 0
    if value > _INT_MIN:
        value = _HASH_MASK + 1 - value
    return value % partition_count


_remembered: Final = lru_cache(_REMEMBERED_MAX)(_partition_of)
