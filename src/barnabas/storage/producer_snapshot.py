"""The ``.snapshot`` files: what the log knew of its producers at one offset, in Kafka's format.

That has room for the last batch of each producer. A producer has up to five under way, and may send any of them again
after a restart, so the ones before the last follow behind Kafka's part, where Kafka does not look; its checksum is over
all of the file. What Kafka wrote has no such part. Read and written by the log and by recovery.
"""

from __future__ import annotations

import struct
from bisect import insort
from collections.abc import Iterable
from typing import Final

from crc32c import crc32c

from barnabas.model.errors import Malformed
from barnabas.model.ids import NO_OFFSET, NO_SEQUENCE
from barnabas.storage.producers import DUPLICATE_WINDOW_BATCHES, AppendedBatch, Producer
from barnabas.world.disk import Disk

SNAPSHOT: Final = ".snapshot"
VERSION: Final = 1
SNAPSHOT_BYTES_MAX: Final = 256 * 1024 * 1024

_PREFIX: Final = struct.Struct(">hI")  # version, CRC-32C of all that follows
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_EARLIER: Final = b"earlier\x01"  # begins what Kafka does not know
_EARLIER_OF: Final = struct.Struct(">qb")  # producer, how many of its batches follow, oldest first
_BATCH: Final = struct.Struct(">iqiq")


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    body = bytearray(_COUNT.size)
    earlier = bytearray()
    count = 0
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        body += _ENTRY.pack(
            producer.producer_id,
            producer.epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else NO_OFFSET,
            last.offset_delta if last else 0,
            producer.last_timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        )
        count += 1
        if len(producer.batches) > 1:
            batches = list(producer.batches)[:-1]
            earlier += _EARLIER_OF.pack(producer.producer_id, len(batches))
            earlier += b"".join(_BATCH.pack(*batch) for batch in batches)
    _COUNT.pack_into(body, 0, count)
    if earlier:
        body += _EARLIER + earlier
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes) -> list[Producer]:
    """The producers a snapshot holds; Malformed if it was torn or is of another version."""
    if len(content) < _PREFIX.size + _COUNT.size:
        raise Malformed("a producer snapshot is longer than that")
    version, checksum = _PREFIX.unpack_from(content)
    body = memoryview(content)[_PREFIX.size :]
    if version != VERSION:
        raise Malformed(f"producer snapshot version {version} is not known")
    if crc32c(body) != checksum:
        raise Malformed("a producer snapshot fails its checksum")
    end = _COUNT.size + _COUNT.unpack_from(body)[0] * _ENTRY.size
    if not _COUNT.size <= end <= len(body):
        raise Malformed("a producer snapshot does not hold as many entries as it says")
    earlier = _decode_earlier(body[end:])
    producers = []
    for entry in _ENTRY.iter_unpack(body[_COUNT.size : end]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = entry
        producer = Producer(producer_id)
        producer.epoch = epoch
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.transaction_first_offset = first_offset if first_offset >= 0 else NO_OFFSET
        if last_offset >= 0:
            producer.batches.extend(earlier.get(producer_id, ()))
            producer.batches.append(AppendedBatch(last_sequence, last_offset, offset_delta, timestamp))
            producer.last_sequence = last_sequence
        producers.append(producer)
    return producers


def _decode_earlier(content: memoryview) -> dict[int, list[AppendedBatch]]:
    if not content:
        return {}
    if bytes(content[: len(_EARLIER)]) != _EARLIER:
        raise Malformed("a producer snapshot ends with something unknown")
    earlier = {}
    position = len(_EARLIER)
    try:
        while position < len(content):
            producer_id, count = _EARLIER_OF.unpack_from(content, position)
            position += _EARLIER_OF.size
            end = position + count * _BATCH.size
            if not 0 < count < DUPLICATE_WINDOW_BATCHES or end > len(content):
                raise Malformed(f"a producer snapshot has {count} earlier batches of producer {producer_id}")
            earlier[producer_id] = [AppendedBatch(*batch) for batch in _BATCH.iter_unpack(content[position:end])]
            position = end
    except struct.error as error:
        raise Malformed("a producer snapshot ends too soon") from error
    return earlier


class ProducerSnapshots:
    """The snapshot files of one log, by offset: the number is the first offset that is not covered."""

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self.directory = directory
        self.offsets = sorted(offsets)
        self.unsynced: list[str] = []

    def path(self, offset: int) -> str:
        return f"{self.directory}/{offset:020d}{SNAPSHOT}"

    def take(self, producers: Iterable[Producer], offset: int) -> None:
        """Write what is known at an offset, unless that has been done. A torn file is found by its checksum."""
        if offset in self.offsets:
            return
        path = self.path(offset)
        self._disk.remove(path)
        file = self._disk.open(path, create=True)
        try:
            file.append(encode_snapshot(producers))
        finally:
            file.close()
        insort(self.offsets, offset)
        self.unsynced.append(path)

    def load(self, *, offset_max: int) -> tuple[list[Producer], int] | None:
        """The newest snapshot up to an offset, with its own; those that cannot be read are removed on the way."""
        for offset in reversed([each for each in self.offsets if each <= offset_max]):
            content = self._disk.read_all(self.path(offset), size_bytes_max=SNAPSHOT_BYTES_MAX)
            try:
                return decode_snapshot(content), offset
            except Malformed:
                self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._disk.remove(self.path(offset))

    def keep_between(self, start: int, end: int) -> None:
        """Remove the snapshots at or below the start of the log and those above its end."""
        for offset in [each for each in self.offsets if each <= start or each > end]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Keep those at the start of a segment, and the newest of all if it lies above every segment."""
        bases = set(base_offsets)
        above = max(bases, default=0)
        strays = [offset for offset in self.offsets if offset not in bases]
        for offset in strays[:-1] if strays and strays[-1] >= above else strays:
            self.remove(offset)
