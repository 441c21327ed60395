"""Ending a segment and beginning the next one.

When it is time for that is decided by the segment's own ``must_roll`` and by whoever calls the log's ``roll``; here it
is done, in an order that leaves a sound log whichever step finds the disk full. Only the log calls this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.index import RELATIVE_OFFSET_MAX
from barnabas.storage.segment import Segment
from barnabas.wire.batch import BatchHeader

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog


def roll(log: PartitionLog, base_offset: int, now_ms: int) -> Segment:
    """The next segment, which begins at an offset; an empty one that begins there already will do."""
    old = log.segments.active
    if old.base_offset == base_offset:
        assert old.size_bytes == 0
        return old
    old.write_indexes(is_closing=True)
    segment = Segment.create(log.disk, log.directory, base_offset, log.settings, now_ms=now_ms)
    old.opened().start_writeback()
    log.flushing.rolled.append(old)
    log.open_segments.used(old)
    log.segments.add(segment)
    log.flushing.files_changed()
    jitter_ms = min(log.settings.segment_jitter_ms, log.settings.segment_ms)
    segment.roll_jitter_ms = log.entropy.below(jitter_ms) if jitter_ms else 0
    try:
        # Recovery of this segment begins with what is known of the producers where it starts.
        log.snapshots.take(log.producers.by_id.values(), base_offset)
    finally:
        # Without that snapshot it begins with an older one: slower, and nothing else.
        log.on_roll(log)
    return segment


def roll_before(log: PartitionLog, header: BatchHeader, now_ms: int) -> Segment:
    """The next segment, for a batch of a leader that may have compacted away what came before it.

    It begins where the log ends all the same, if the batch is not too far off for its indexes: recovery takes a gap
    between two segments for a lost one.
    """
    is_far = header.last_offset - log.end_offset > RELATIVE_OFFSET_MAX
    return roll(log, header.base_offset if is_far else log.end_offset, now_ms)
