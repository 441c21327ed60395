"""Making a log shorter: at its end when a leader overrules it, at its start when records are old or unwanted.

What may go is decided by ``retention`` and by the callers; here it goes, with everything that depends on it. Files are
renamed at once and vanish later, so that readers can finish. Only the log calls this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.storage.replay import rebuild
from barnabas.storage.retention import Bounds, expired_count
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFull

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog


def truncate_to(log: PartitionLog, offset: int) -> None:
    """Cut the log so that it ends at an offset."""
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
        _discard(log, log.segments.drop_from(index + 1))
    log.aborted_of(log.segments.active)
    log.segments.active.truncate(offset)
    log.end_offset = offset
    log.log_start_offset = min(log.log_start_offset, offset)
    log.epochs.truncate_end(offset)
    log.high_watermark = min(log.high_watermark, offset)
    had_producers = bool(log.producers.by_id)
    if had_producers:
        rebuild(log.producers, log.snapshots, log.segments, start=log.log_start_offset, end=offset)
        log.producers.high_watermark_moved(log.high_watermark)
    else:
        log.snapshots.keep_between(log.log_start_offset, offset)
    _was_cut(log, offset)


def truncate_fully(log: PartitionLog, start_offset: int) -> None:
    """Drop everything and begin at an offset."""
    now_ms = log.clock.wall_ms()
    _discard(log, log.segments.all())
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
    paths = []
    log.flushing.dropped(segments)
    for segment in segments:
        log.snapshots.remove(segment.base_offset)
        log.open_segments.retire(segment)
        paths += segment.rename_deleted()
    log.remove_later(paths, log.settings.file_delete_delay_ms)
