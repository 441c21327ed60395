"""A snapshot of the metadata as a file: ``<end offset>-<epoch>.checkpoint``, in Kafka's format.

The file is a row of batches whose offsets count from zero: a control batch with the header, the kraft.version and the
voters, batches of metadata records, a control batch with the footer. It grows as ``.checkpoint.part``, is synced and
then renamed, so a file with the final name is whole. When snapshots are taken and deleted is the driver's business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.model.errors import CorruptBatch, Malformed
from barnabas.raft.control_records import control_batch, decode_control, voter_set_of, voters_record
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, VoterSet
from barnabas.wire.batch import HEADER_BYTES, BatchHeader, crc_matches, read_header
from barnabas.wire.message import Message
from barnabas.wire.messages.raft_control import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.wire.records import decode_batch, encode_batch
from barnabas.world.disk import Buffer, Disk, File

SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"
BATCH_BYTES: Final = 16 * 1024  # records are gathered into batches of about this size; others get their turn between
BATCH_BYTES_MAX: Final = 64 << 20  # a larger batch in a file is garbage

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class CorruptSnapshot(Malformed):
    """A snapshot that does not begin with a header, does not end with a footer, or has a broken batch between."""


def snapshot_path(directory: str, snapshot: OffsetAndEpoch, suffix: str = SUFFIX) -> str:
    return f"{directory}/{snapshot.offset:020d}-{snapshot.epoch:010d}{suffix}"


def list_snapshots(disk: Disk, directory: str) -> list[OffsetAndEpoch]:
    """The whole snapshots of a directory, oldest first."""
    found = []
    for name in disk.list(directory):
        match = _NAME.fullmatch(name)
        if match:
            found.append(OffsetAndEpoch(int(match[1]), int(match[2])))
    return sorted(found)


def remove_leftovers(disk: Disk, directory: str) -> None:
    """What a crash left of snapshots that were being written or deleted."""
    for name in disk.list(directory):
        if name.endswith((PART_SUFFIX, DELETED_SUFFIX)):
            disk.remove(f"{directory}/{name}")


class PartialSnapshot:
    """A snapshot on its way to the disk; either ``finish`` or ``discard`` ends it."""

    def __init__(self, disk: Disk, directory: str, snapshot: OffsetAndEpoch) -> None:
        self.snapshot = snapshot
        self._disk = disk
        self._directory = directory
        self._path = snapshot_path(directory, snapshot, PART_SUFFIX)
        disk.remove(self._path)
        self._file: File = disk.open(self._path, create=True)

    @property
    def path(self) -> str:
        return self._path

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def append(self, data: Buffer) -> None:
        self._file.append(data)

    async def finish(self) -> None:
        await self._file.sync()
        self._file.close()
        self._disk.rename(self._path, snapshot_path(self._directory, self.snapshot))
        await self._disk.sync_directory(self._directory)

    def discard(self) -> None:
        self._file.close()
        self._disk.remove(self._path)


async def write_snapshot(
    part: PartialSnapshot,
    records: Iterable[bytes],
    *,
    append_time_ms: int,
    now_ms: int,
    kraft_version: int,
    voter_set: VoterSet | None,
) -> None:
    """Fill a new file and finish it. The loop gets its turn between batches."""
    epoch = part.snapshot.epoch
    head: list[Message] = [SnapshotHeaderRecord(last_contained_log_timestamp=append_time_ms)]
    if kraft_version >= KRAFT_VERSION_RECONFIGURABLE:
        head.append(KRaftVersionRecord(k_raft_version=kraft_version))
        if voter_set is not None:
            head.append(voters_record(voter_set))
    part.append(control_batch(head, base_offset=0, epoch=epoch, now_ms=now_ms))
    next_offset = len(head)
    for values in _gathered(records):
        rows = [(now_ms, None, value, ()) for value in values]
        part.append(encode_batch(rows, base_offset=next_offset, leader_epoch=epoch))
        next_offset += len(values)
        await asyncio.sleep(0)
    part.append(control_batch([SnapshotFooterRecord()], base_offset=next_offset, epoch=epoch, now_ms=now_ms))
    await part.finish()


def _gathered(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    values: list[bytes] = []
    size_bytes = 0
    for value in records:
        values.append(value)
        size_bytes += len(value)
        if size_bytes >= BATCH_BYTES:
            yield values
            values, size_bytes = [], 0
    if values:
        yield values


class SnapshotReader:
    """Reads a file from its header on; the facts of the header are there at once, the records come one by one."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._path = path
        self._file = disk.open(path)
        self._position = 0
        self.append_time_ms = -1
        self.kraft_version = 0
        self.voter_set: VoterSet | None = None
        buffer, header = self._batch()
        messages = [decode_control(record) for record in decode_batch(buffer)] if header.is_control else []
        if not messages or not isinstance(messages[0], SnapshotHeaderRecord):
            raise CorruptSnapshot(f"{path} does not begin with a header")
        for message in messages:
            if isinstance(message, SnapshotHeaderRecord):
                self.append_time_ms = message.last_contained_log_timestamp
            elif isinstance(message, KRaftVersionRecord):
                self.kraft_version = message.k_raft_version
            elif isinstance(message, VotersRecord):
                self.voter_set = voter_set_of(message)

    def _batch(self) -> tuple[bytes, BatchHeader]:
        head = self._file.read(self._position, HEADER_BYTES)
        try:
            header = read_header(head)
            if header.size_bytes > BATCH_BYTES_MAX:
                raise CorruptBatch(f"a batch of {header.size_bytes} bytes")
            buffer = self._file.read(self._position, header.size_bytes)
            if not crc_matches(buffer, 0, header):
                raise CorruptBatch("a batch fails its checksum")
        except CorruptBatch as error:
            raise CorruptSnapshot(f"{self._path} at byte {self._position}: {error}") from error
        self._position += header.size_bytes
        return buffer, header

    def __iter__(self) -> Iterator[bytes]:
        for values in self.batches():
            yield from values

    def batches(self) -> Iterator[list[bytes]]:
        """The metadata records, batch by batch; CorruptSnapshot unless the footer is the end."""
        while self._position < self._file.size_bytes:
            buffer, header = self._batch()
            records = decode_batch(buffer)
            if not header.is_control:
                yield [record.value or b"" for record in records]
            elif any(isinstance(decode_control(record), SnapshotFooterRecord) for record in records):
                if self._position != self._file.size_bytes:
                    raise CorruptSnapshot(f"{self._path} goes on after its footer")
                return
        raise CorruptSnapshot(f"{self._path} has no footer")

    def close(self) -> None:
        self._file.close()


async def check_snapshot(disk: Disk, path: str) -> None:
    """Read a file from end to end, as one that came over the network must be before it is trusted."""
    reader = SnapshotReader(disk, path)
    try:
        for _ in reader.batches():
            await asyncio.sleep(0)
    finally:
        reader.close()
