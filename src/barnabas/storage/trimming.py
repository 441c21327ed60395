"""Making a log shorter: at its end when a leader overrules it, at its start when records are old or unwanted.

What may go is decided by ``retention`` and by the callers; here it goes, with everything that depends on it. Files are
renamed at once and vanish later, so that readers can finish. Only the log calls this.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.storage.replay import rebuild
from barnabas.storage.retention import Bounds, expired_count
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFull

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog


def truncate_to(log: PartitionLog, offset: int) -> None:
    """Cut the log so that it ends at an offset, or where the batch begins that holds it.

    So nothing is written behind a gap, of which nobody could tell after a crash whether it is a fault.
    """
    assert offset >= 0
    if offset >= log.end_offset:
        # A leader that wrote nothing may have left an epoch behind that begins at the end.
        log.epochs.truncate_end(log.end_offset)
        return
    if offset < log.segments.first.base_offset:
        truncate_fully(log, offset)
        return
    index = log.segments.floor_index(offset)
    if index + 1 < len(log.segments):
        # From the end on: a crash in between leaves a log that is longer than it should be, and no gap in it.
        _discard(log, log.segments.drop_from(index + 1)[::-1])
    log.aborted_of(log.segments.active)
    log.segments.active.truncate(offset)
    start = log.log_start_offset = min(log.log_start_offset, offset)
    kept_end = _end_of(log.segments.active, offset)
    end = log.end_offset = max(kept_end, start)
    log.epochs.truncate_end(end)
    log.high_watermark = min(log.high_watermark, end)
    had_producers = bool(log.producers.by_id)
    if had_producers:
        rebuild(log.producers, log.snapshots, log.segments, start=start, end=end)
        log.producers.high_watermark_moved(log.high_watermark)
    else:
        log.snapshots.keep_between(start, end)
    if kept_end < start:
        # All that is left lies below the start. Without room for a new segment it stays, as it does in Kafka.
        with suppress(DiskFull):
            _begin_segment(log, start)
    _was_cut(log, end)


def _end_of(segment: Segment, offset: int) -> int:
    """Where the last batch ends of a segment that was just cut at an offset."""
    end = segment.base_offset
    for _, header in segment.headers(segment.offset_index.floor(offset - segment.base_offset)[1]):
        end = header.next_offset
    return end


def _begin_segment(log: PartitionLog, base_offset: int) -> None:
    """In the place of all others, which hold nothing that can be read."""
    segment = Segment.create(log.disk, log.directory, base_offset, log.settings, now_ms=log.clock.wall_ms())
    _discard(log, log.segments.replace_all(segment))
    if log.producers.by_id:
        log.snapshots.take(log.producers.by_id.values(), base_offset)


def truncate_fully(log: PartitionLog, start_offset: int) -> None:
    """Drop everything and begin at an offset."""
    now_ms = log.clock.wall_ms()
    _discard(log, log.segments.all()[::-1])
    log.segments.replace_all(Segment.create(log.disk, log.directory, start_offset, log.settings, now_ms=now_ms))
    log.log_start_offset = log.end_offset = log.high_watermark = start_offset
    log.epochs.clear()
    log.producers.clear()
    log.snapshots.keep_between(start_offset, start_offset)
    _was_cut(log, start_offset)


def _was_cut(log: PartitionLog, offset: int) -> None:
    log.reader.forget()
    log.cut_count += 1
    if log.cleaned_offset is not None:
        log.cleaned_offset = min(log.cleaned_offset, offset)
    log.flushing.truncated(offset)
    log.flushing.files_changed()
    log.on_truncate(log)


def start_at(log: PartitionLog, offset: int) -> None:
    """Let the log start at an offset, unless it starts above it."""
    if offset > log.log_start_offset:
        log.log_start_offset = offset
        log.epochs.truncate_start(offset)


def retain(log: PartitionLog, now_ms: int) -> int:
    """Drop what the settings do not keep: first the start of the log moves, then the segments below it go."""
    bounds = Bounds(log.log_start_offset, log.high_watermark, log.end_offset)
    count = expired_count(log.segments.all(), log.settings, bounds, now_ms=now_ms)
    if count == 0:
        return 0
    if count == len(log.segments):
        try:
            log.roll(now_ms)
        except DiskFull:
            if count == 1:
                raise
            # No room for a new segment: the active one stays until the others are gone.
            count -= 1
    start_at(log, log.segments[count].base_offset)
    _discard(log, log.segments.drop_first(count))
    log.reader.forget()
    log.flushing.files_changed()
    return count


def _discard(log: PartitionLog, segments: list[Segment]) -> None:
    paths, older = [], []
    log.flushing.dropped(segments)
    for segment in segments:
        log.snapshots.remove(segment.base_offset)
        log.open_segments.retire(segment)
        renamed = segment.rename_deleted()
        paths += renamed.paths
        older += renamed.older
    if older:
        log.remove_later(older, 0)
    log.remove_later(paths, log.settings.file_delete_delay_ms)
