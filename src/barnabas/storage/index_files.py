"""The index files of a segment: created empty with the segment, and updated from memory.

The files of an active segment may lack entries that memory has, and never have more: entries are added in groups, and a
truncation truncates the files at once. The files are not synced: after a crash, recovery rebuilds them, since it starts
in the active segment or below it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.storage.index import CorruptIndex, OffsetIndex, TimeIndex
from barnabas.world.disk import Disk, File

if TYPE_CHECKING:
    from barnabas.storage.log import PartitionLog

LOGS_PER_TURN: Final = 16

Contained: TypeAlias = "AbstractContextManager[None]"


def empty_file(disk: Disk, path: str) -> File:
    """Create an empty file, or truncate the one that exists."""
    file = disk.open(path, create=True)
    if file.size_bytes:
        file.truncate(0)
    return file


def read_last(file: File, entry_bytes: int) -> bytes:
    """Read the last entry; shorter than an entry if the file has none."""
    return file.read(max(0, file.size_bytes - entry_bytes), entry_bytes)


def read_whole(disk: Disk, path: str, *, size_bytes_max: int) -> bytes:
    if not disk.exists(path):
        raise CorruptIndex(f"{path} is missing")
    if disk.size_bytes(path) > size_bytes_max:
        raise CorruptIndex(f"{path} is larger than an index can be")
    return disk.read_all(path, size_bytes_max=size_bytes_max)


def write_entries(disk: Disk, path: str, index: OffsetIndex | TimeIndex, entry_bytes: int) -> None:
    """Truncate entries that memory does not have, and append those that the file lacks."""
    file = disk.open(path, create=True)
    try:
        if file.size_bytes < index.written_count * entry_bytes:
            index.written_count = 0
        if file.size_bytes != index.written_count * entry_bytes:
            file.truncate(index.written_count * entry_bytes)
        if index.has_unwritten:
            file.append(index.unwritten())
            index.mark_written()
    finally:
        file.close()


async def catch_up(logs: Iterable[PartitionLog], contained: Callable[[PartitionLog, str], Contained]) -> None:
    """Write the new entries of every active segment to its index files, a few logs in each turn of the loop.

    ``contained`` keeps an error of one log from the others.
    """
    count = 0
    for log in logs:
        if log.is_over or not log.segments.active.has_unwritten_entries:
            continue
        with contained(log, "index"):  # a full disk is only noted: the entries follow when there is room
            log.segments.active.write_indexes()
        count += 1
        if count % LOGS_PER_TURN == 0:
            await asyncio.sleep(0)
