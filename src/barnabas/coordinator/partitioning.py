"""Which partition of a coordinator's topic a group or a transactional id belongs to: Java's hash of its name.

Every broker and every one of Kafka's tools must come to the same answer, so nothing here may ever change.
"""

from __future__ import annotations

from typing import Final

_HASH_MASK: Final = 0xFFFFFFFF
_INT_MIN: Final = 0x80000000


def partition_of(key: str, partition_count: int) -> int:
    """Java's ``String.hashCode``, its absolute value (0 for the one that has none), modulo the partitions."""
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _HASH_MASK
    if value == _INT_MIN:
        return 0
    if value > _INT_MIN:
        value = _HASH_MASK + 1 - value
    return value % partition_count
