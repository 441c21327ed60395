"""From written batches to what is known of their producers: on the log's own appends, and again after a restart.

``take_over`` is called for every batch with a producer id, in order of offsets. ``rebuild`` begins with the newest
snapshot and reads the headers of what was written after it.
"""

from __future__ import annotations

from barnabas.storage.index import CorruptIndex
from barnabas.storage.producer_snapshot import ProducerSnapshots
from barnabas.storage.producers import Producers
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.storage.transactions import AbortedRange, Marker, read_marker
from barnabas.wire.batch import CONTROL, BatchHeader
from barnabas.world.disk import Buffer


def take_over(
    producers: Producers, header: BatchHeader, marker: Marker | None, base_offset: int, index: Segment | None
) -> None:
    """Note a batch with a producer id; an aborted transaction goes into the index of the segment, if one is given."""
    if not header[5] & CONTROL:
        producers.append(header, base_offset)
    elif marker is not None:
        completed = producers.end(header, marker, base_offset)
        if completed is not None and completed.is_aborted and index is not None:
            undecided = producers.first_undecided_offset
            stable = undecided if undecided >= 0 else completed.last_offset + 1
            index.add_aborted(
                AbortedRange(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )


def marker_of(buffer: Buffer, position: int, header: BatchHeader) -> Marker | None:
    return read_marker(buffer, position, header) if header[5] & CONTROL else None


def rebuild(producers: Producers, snapshots: ProducerSnapshots, segments: Segments, *, start: int, end: int) -> None:
    """Make the producers' table what it was when the log ended at ``end``; the log starts at ``start``."""
    snapshots.keep_between(start, end)
    producers.clear()
    _restore(producers, snapshots, segments, start=start, end=end)


def _restore(producers: Producers, snapshots: ProducerSnapshots, segments: Segments, *, start: int, end: int) -> None:
    loaded = snapshots.load(offset_max=end)
    covered = start
    if loaded is not None:
        producers.load(loaded[0])
        covered = loaded[1]
    if covered >= end:
        return
    for segment in segments.from_offset(covered):
        if segment.base_offset >= end:
            break
        found = segment.locate(covered)
        if found is not None:
            replay_segment(producers, segment, position=found[0], end=end)


def aborted_of(segment: Segment, snapshots: ProducerSnapshots, segments: Segments, *, start: int) -> list[AbortedRange]:
    """The aborted transactions of a segment; if its index makes no sense, as its batches tell them."""
    try:
        return segment.aborted
    except CorruptIndex:
        producers = Producers()
        _restore(producers, snapshots, segments, start=start, end=segment.base_offset)
        segment.reset_aborted()
        for at, header in segment.headers():
            if header.producer_id >= 0:
                batch = segment.read_batch(at, header.size_bytes) if header.is_control else b""
                take_over(producers, header, marker_of(batch, 0, header), header.base_offset, segment)
        return segment.aborted


def replay_segment(producers: Producers, segment: Segment, *, position: int, end: int) -> None:
    """Take over the batches of a segment that is not in doubt, up to an offset."""
    for at, header in segment.headers(position):
        if header.base_offset >= end:
            return
        if header.producer_id >= 0:
            batch = segment.read_batch(at, header.size_bytes) if header.is_control else b""
            take_over(producers, header, marker_of(batch, 0, header), header.base_offset, None)
