"""Putting a cleaned segment in the place of those it was made from, so that a crash leaves either and never a mixture.

The files are written under names with ``.cleaned``, made durable, and then renamed twice: once all of them end in
``.swap`` the swap is decided, and ``recovery`` finishes what a crash interrupts. The renames are not interrupted by
anything else, because nobody waits between them. Only the cleaner calls this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.storage.batch_file import SUFFIXES, file_name
from barnabas.storage.log import PartitionLog
from barnabas.storage.recovery import CLEANED, SWAP
from barnabas.storage.segment import Segment
from barnabas.world.disk import DiskFailure

LIVE: Final = ""


class CleanedSegment(Segment):
    """A segment that is being made; nobody reads it under this name."""

    __slots__ = ()

    def path(self, suffix: str) -> str:
        return super().path(suffix) + CLEANED

    async def sync(self) -> None:
        """Complete the indexes and make all files durable."""
        self.write_indexes(is_closing=True)
        for suffix in SUFFIXES:
            if self._disk.exists(self.path(suffix)):
                file = self._disk.open(self.path(suffix))
                try:
                    await file.sync()
                finally:
                    file.close()


def is_current(log: PartitionLog, segments: Sequence[Segment]) -> bool:
    """Whether the log still has these segments, one after the other and all of them closed."""
    bases = log.segments.base_offsets
    if log.is_over or segments[0].base_offset not in bases:
        return False
    start = bases.index(segments[0].base_offset)
    there = log.segments.all()[start : start + len(segments)]
    same = len(there) == len(segments) and all(a is b for a, b in zip(there, segments, strict=True))
    return same and log.segments.active is not segments[-1]


def replace_segments(log: PartitionLog, old: Sequence[Segment], cleaned: CleanedSegment) -> Segment:
    """From here on the log has the cleaned segment instead of the old ones, which vanish after the usual delay."""
    assert is_current(log, old)
    assert cleaned.base_offset == old[0].base_offset
    size_bytes = cleaned.size_bytes
    cleaned.close()
    new = Segment(log.disk, log.directory, cleaned.base_offset, log.settings, size_bytes=size_bytes)
    new.created_ms = old[-1].created_ms
    gone: list[str] = []
    older: list[str] = []
    try:
        _rename(log, cleaned.base_offset, CLEANED, SWAP)
        log.flushing.dropped(list(old))
        for segment in old:
            if segment.base_offset != new.base_offset:
                log.snapshots.remove(segment.base_offset)
            log.open_segments.retire(segment)
            renamed = segment.rename_deleted()
            gone += renamed.paths
            older += renamed.older
        _rename(log, new.base_offset, SWAP, LIVE)
    except DiskFailure as error:
        # Halfway between the two: only recovery can tell, so nothing is done here any more.
        log.fail(error, is_final=True)
        raise
    log.segments.replace(old, new)
    log.reader.forget()
    log.flushing.files_changed()
    if older:
        log.remove_later(older, 0)
    log.remove_later(gone, log.settings.file_delete_delay_ms)
    return new


def _rename(log: PartitionLog, base_offset: int, before: str, after: str) -> None:
    # The log comes first: once it has its name, an index that has not is simply brought along by recovery.
    for suffix in SUFFIXES:
        path = f"{log.directory}/{file_name(base_offset, suffix)}"
        if log.disk.exists(path + before):
            log.disk.rename(path + before, path + after)
