"""Memory that one batch's records have left stays with the process for the next batch's.

CPython takes memory for small objects from the kernel in arenas of a MiB and gives each back as soon as nothing is
left in it. To have hundreds of pages unmapped, mapped and cleared for every batch costs as much as making its records.
One small object alive in an arena keeps it. Only :mod:`barnabas.wire.records` calls this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

# An arena has room for 3,600 records of 100 bytes, or for 1,400 of the largest whose values are in arenas (512 bytes).
RECORDS_PER_ANCHOR: Final = 1_000
# As many arenas at the very most are kept so, and for anything that the interpreter allocates, not for records alone.
ANCHORS_MAX: Final = 16


class WarmMemory:
    """Holds on to an offset, which is small and nobody's secret, of one in so many records."""

    __slots__ = ("_anchors", "_skipped")

    def __init__(self) -> None:
        self._anchors: deque[int] = deque(maxlen=ANCHORS_MAX)
        self._skipped = 0  # records since the last anchor: small batches count together

    def keep(self, records: Sequence[tuple[Any, ...]], offset_field: int) -> None:
        """Called with every batch, as it is decoded; the oldest anchors give way to new ones."""
        first = RECORDS_PER_ANCHOR - 1 - self._skipped
        for record in records[first::RECORDS_PER_ANCHOR]:
            self._anchors.append(record[offset_field])
        self._skipped = (self._skipped + len(records)) % RECORDS_PER_ANCHOR
