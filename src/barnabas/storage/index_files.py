"""The files of a segment's indexes: made empty with the segment, and brought up to date from memory.

While a segment is active its files lag behind memory and are never ahead of it: entries are added in groups, and what
is cut off the log is cut off here at once. None of that is synced: after a crash recovery makes these files anew, as it
begins in the active segment or below it. Only the segment, and for all logs of a store ``catch_up``, use this.
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
    """A new file, or the one that has the name, with nothing in it."""
    file = disk.open(path, create=True)
    if file.size_bytes:
        file.truncate(0)
    return file


def read_last(file: File, entry_bytes: int) -> bytes:
    """The last entry, or less than one if there is none."""
    return file.read(max(0, file.size_bytes - entry_bytes), entry_bytes)


def read_whole(disk: Disk, path: str, *, size_bytes_max: int) -> bytes:
    if not disk.exists(path):
        raise CorruptIndex(f"{path} is missing")
    if disk.size_bytes(path) > size_bytes_max:
        raise CorruptIndex(f"{path} is larger than an index can be")
    return disk.read_all(path, size_bytes_max=size_bytes_max)


def write_entries(disk: Disk, path: str, index: OffsetIndex | TimeIndex, entry_bytes: int) -> None:
    """Cut what memory does not have and add what the file has not."""
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
