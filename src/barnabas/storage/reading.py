"""Where the bytes lie that a reader asks for: a slice of one segment, within the limits it gives.

No bytes of records are read here, only headers on the way from an index entry to the offset. Offsets that were asked
for lately are remembered, because many readers stand at the same places: the high watermark, and where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.model.ids import NO_OFFSET
from barnabas.storage.open_segments import OpenSegments
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.world.disk import DiskFailure, DiskFull, FileSlice

REMEMBERED_POSITIONS_MAX: Final = 64


class LogRead(NamedTuple):
    """Bytes in a file, and an offset that no whole batch among them reaches."""

    records: FileSlice | None
    next_offset_bound: int


class LogReader:
    __slots__ = ("_on_failure", "_open_segments", "_positions", "_segments")

    def __init__(
        self, segments: Segments, open_segments: OpenSegments, on_failure: Callable[[DiskFailure], None]
    ) -> None:
        self._segments = segments
        self._open_segments = open_segments
        self._on_failure = on_failure
        self._positions: dict[int, tuple[Segment, int]] = {}

    def forget(self) -> None:
        """The log was cut, or its segments are others: nothing that was remembered holds."""
        self._positions.clear()

    def failed(self, error: DiskFailure) -> None:
        """What cannot be read now cannot be trusted later, unless it is only that too many files are open."""
        if not isinstance(error, DiskFull):
            self._on_failure(error)

    def read(
        self, offset: int, *, size_bytes_max: int, end_offset: int, end_offset_max: int, at_least_one: bool
    ) -> LogRead:
        if offset >= end_offset_max or offset == end_offset:
            return LogRead(None, offset)
        segments = self._segments
        index = segments.floor_index(offset)
        segment, position = self._locate(index, offset)
        while position < 0 and index + 1 < len(segments):
            # Compaction has removed what this segment held at its end.
            index += 1
            segment, position = self._locate(index, offset)
        if position < 0:
            return LogRead(None, offset)
        segment_end = segments.end_of(index, end_offset=end_offset)
        limit = segment.size_bytes
        if end_offset_max < segment_end:
            # A batch that reaches the bound is not for this reader yet.
            limit_at = self._locate(index, end_offset_max)[1]
            limit = limit_at if limit_at >= 0 else limit
        size_bytes = available = limit - position
        if size_bytes > size_bytes_max:
            first_bytes = min(segment.batch_size(position), available)
            if size_bytes_max < first_bytes and not at_least_one:
                # A batch that is cut is of no use to anybody; clients take a lone one for a batch above their limit.
                return LogRead(None, offset)
            size_bytes = max(size_bytes_max, first_bytes)
        if size_bytes <= 0:
            return LogRead(None, offset)
        bound = min(segment_end, end_offset_max)
        if size_bytes < available:
            above = segment.offset_index.above_position(position + size_bytes)
            bound = bound if above is None else min(bound, segment.base_offset + above)
        if segment is not segments.active:
            self._open_segments.used(segment)
        return LogRead(FileSlice(segment.opened(), position, size_bytes, self.failed), bound)

    def _locate(self, index: int, offset: int) -> tuple[Segment, int]:
        """Segment and position of the first batch that ends at or above an offset; −1 if the segment ends below."""
        segment = self._segments[index]
        if offset == segment.tail_offset:
            return segment, segment.tail_position
        remembered = self._positions.get(offset)
        if remembered is not None and remembered[0] is segment:
            return remembered
        found = segment.locate(offset)
        if found is None:
            return segment, NO_OFFSET
        if len(self._positions) >= REMEMBERED_POSITIONS_MAX:
            self._positions.clear()
        self._positions[offset] = (segment, found[0])
        return segment, found[0]
