"""Files of fixed entries for ``dump``: offset, time and transaction indexes, and snapshots of producers.

An index is compared with the segment beside it, if that is there: an entry must point at the batch that it names.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

from crc32c import crc32c

from barnabas.cli.files.dump_finding import Broken, Finding, Row, shown_time
from barnabas.model.errors import CorruptBatch
from barnabas.wire.batch import HEADER_BYTES, read_header

INDEX_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")
TRANSACTION_ENTRY: Final = Struct(">hqqqq")
SNAPSHOT_HEAD: Final = Struct(">hIi")
SNAPSHOT_CHECKED_FROM: Final = 6
SNAPSHOT_VERSION: Final = 1
PRODUCER_ENTRY: Final = Struct(">qhiqiqiq")
EARLIER: Final = b"earlier\x01"  # what follows Kafka's part: the batches before the last of each producer
EARLIER_OF: Final = Struct(">qb")
EARLIER_BATCH: Final = Struct(">iqiq")
PRODUCER_NAMES: Final = (
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "offset_delta",
    "timestamp",
    "coordinator_epoch",
    "current_txn_first_offset",
)
EARLIER_NAMES: Final = PRODUCER_NAMES[2:6]


def read_index(path: Path, arguments: Namespace) -> Iterator[Finding]:
    base_offset = _base_offset(path)
    log = _Segment(path.with_suffix(".log"))
    before = -1
    for position, (relative, place) in _entries(path, INDEX_ENTRY):
        if relative == place == 0 and (position or log.misses(base_offset, 0)):
            return  # the rest was made ahead of time and is not in use
        yield Row("entry", {"offset": base_offset + relative, "position": place})
        if relative <= before:
            yield Broken(position, f"offset {base_offset + relative} does not come after {base_offset + before}")
        before = relative
        why = log.misses(base_offset + relative, place)
        if why:
            yield Broken(position, why)
    yield from _odd_end(path, INDEX_ENTRY)


def read_time_index(path: Path, arguments: Namespace) -> Iterator[Finding]:
    base_offset = _base_offset(path)
    before = (-1, -1)
    for position, (timestamp, relative) in _entries(path, TIME_ENTRY):
        if timestamp == relative == 0 and (position or path.stat().st_size > TIME_ENTRY.size):
            return
        facts = {"timestamp": timestamp, "time": shown_time(timestamp), "offset": base_offset + relative}
        yield Row("entry", facts)
        if timestamp < before[0] or relative < before[1]:
            yield Broken(position, f"the entry of offset {base_offset + relative} goes back")
        before = (timestamp, relative)
    yield from _odd_end(path, TIME_ENTRY)


def read_transaction_index(path: Path, arguments: Namespace) -> Iterator[Finding]:
    names = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    before = -1
    for position, (version, *numbers) in _entries(path, TRANSACTION_ENTRY):
        facts = dict(zip(names, numbers, strict=True))
        yield Row("aborted", facts)
        if version != 0:
            yield Broken(position, f"an entry cannot have version {version}")
        if facts["first_offset"] > facts["last_offset"] or facts["last_offset"] < before:
            yield Broken(position, f"the transaction of producer {facts['producer_id']} is out of order")
        before = facts["last_offset"]
    yield from _odd_end(path, TRANSACTION_ENTRY)


def read_producers(path: Path, arguments: Namespace) -> Iterator[Finding]:
    content = path.read_bytes()
    if len(content) < SNAPSHOT_HEAD.size:
        yield Broken(0, f"{len(content)} bytes are no snapshot")
        return
    version, crc, count = SNAPSHOT_HEAD.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        yield Broken(0, f"a snapshot of version {version} is not known")
        return
    if crc32c(content[SNAPSHOT_CHECKED_FROM:]) != crc:
        yield Broken(2, f"the checksum is not {crc:#010x}")
    end = SNAPSHOT_HEAD.size + count * PRODUCER_ENTRY.size
    if count < 0 or len(content) < end:
        yield Broken(SNAPSHOT_CHECKED_FROM, f"{len(content)} bytes cannot hold {count} producers")
        return
    for index in range(count):
        numbers = PRODUCER_ENTRY.unpack_from(content, SNAPSHOT_HEAD.size + index * PRODUCER_ENTRY.size)
        yield Row("producer", dict(zip(PRODUCER_NAMES, numbers, strict=True)))
    if len(content) > end:
        yield from _read_earlier(content, end)


def _read_earlier(content: bytes, position: int) -> Iterator[Finding]:
    if content[position : position + len(EARLIER)] != EARLIER:
        yield Broken(position, f"{len(content) - position} bytes behind the producers are not known")
        return
    position += len(EARLIER)
    while position < len(content):
        if len(content) - position < EARLIER_OF.size:
            yield Broken(position, "the file ends within a producer's earlier batches")
            return
        producer_id, count = EARLIER_OF.unpack_from(content, position)
        end = position + EARLIER_OF.size + count * EARLIER_BATCH.size
        if count < 1 or end > len(content):
            yield Broken(position, f"there is no room for {count} earlier batches of producer {producer_id}")
            return
        for numbers in EARLIER_BATCH.iter_unpack(content[position + EARLIER_OF.size : end]):
            yield Row("earlier", {"producer_id": producer_id} | dict(zip(EARLIER_NAMES, numbers, strict=True)))
        position = end


def _entries(path: Path, entry: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    content = path.read_bytes()
    whole = len(content) - len(content) % entry.size
    for index, numbers in enumerate(entry.iter_unpack(content[:whole])):
        yield index * entry.size, numbers


def _odd_end(path: Path, entry: Struct) -> Iterator[Broken]:
    size = path.stat().st_size
    if size % entry.size:
        yield Broken(size - size % entry.size, f"{size % entry.size} bytes at the end are no whole entry")


def _base_offset(path: Path) -> int:
    return int(path.stem) if path.stem.isdecimal() else 0


class _Segment:
    """The log beside an index."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes() if path.exists() else None

    def misses(self, offset: int, position: int) -> str | None:
        """Why the log has no batch at ``position`` that ends at ``offset``; None if it has, or if there is no log."""
        if self._content is None:
            return None
        if not 0 <= position <= len(self._content) - HEADER_BYTES:
            return f"offset {offset} should be at byte {position}, and the log has {len(self._content)}"
        try:
            header = read_header(self._content, position)
        except CorruptBatch as error:
            return f"offset {offset} should be at byte {position} of the log: {error}"
        if header.last_offset != offset:
            return f"offset {offset} should be at byte {position}, where the log has {header.last_offset}"
        return None
