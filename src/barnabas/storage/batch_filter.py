"""What cleaning makes of each batch: it stays as it is, with fewer records, empty, or not at all.

Pure, and run in workers: bytes of a segment in, bytes of the cleaned one out, a bounded slice at a time. Offsets,
sequences and the last offset of a batch never change. The cleaner reads and writes the files; ``offset_map`` knows
which records are the last of their key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import NO_OFFSET, NO_TIMESTAMP
from barnabas.storage.cleaned_transactions import CleanedTransactions
from barnabas.storage.offset_map import OffsetMap
from barnabas.storage.producers import Producer
from barnabas.storage.transactions import AbortedRange, read_marker
from barnabas.wire.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc_matches,
    read_header,
    seal,
)
from barnabas.wire.compression import compress
from barnabas.wire.record_filter import copy_kept
from barnabas.wire.records import RECORDS_BYTES_MAX, payload_of
from barnabas.world.disk import Buffer

BATCHES_PER_SLICE_MAX: Final = 96  # what a worker does in about a millisecond if all of them are small
SLICE_BYTES_MAX: Final = 256 * 1024
HORIZON_MS_MAX: Final = 1 << 62  # so that no timestamp is further from it than 64 bits can say


class LastBatch(NamedTuple):
    """Where the state of an active producer comes from: its last data, or else the marker of its epoch."""

    last_offset: int  # NO_OFFSET: there is none of its epoch
    epoch: int


def last_batches(producers: Iterable[Producer]) -> dict[int, LastBatch]:
    return {
        producer.producer_id: LastBatch(
            producer.batches[-1].last_offset if producer.batches else NO_OFFSET, producer.epoch
        )
        for producer in producers
    }


class Noted(NamedTuple):
    """A slice whose keys were put into the map."""

    consumed: int
    batch_count: int
    is_full: bool


class Kept(NamedTuple):
    """A slice that was filtered, and what is left of it."""

    consumed: int
    batch_count: int
    records: Buffer
    headers: list[BatchHeader]
    aborted: list[AbortedRange]
    is_changed: bool


def _batches(data: bytes, position: int) -> Iterable[tuple[int, BatchHeader]]:
    """The whole, sound batches of a slice; what is rotten must not decide what is deleted."""
    end = len(data)
    slice_end = position + SLICE_BYTES_MAX
    count = 0
    while end - position >= HEADER_BYTES and count < BATCHES_PER_SLICE_MAX and position < slice_end:
        header = read_header(data, position)
        following = position + header.length + LENGTH_OVERHEAD
        if following > end:
            return
        if not crc_matches(data, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
        yield position, header
        position = following
        count += 1


def _payload(data: bytes, position: int, header: BatchHeader) -> Buffer:
    """The uncompressed records of a batch that is whole."""
    if header.attributes & CODEC_MASK:
        return payload_of(data, position, header, size_bytes_max=RECORDS_BYTES_MAX)
    return memoryview(data)[position + HEADER_BYTES : position + header.size_bytes]


class KeyCollector:
    """The first pass: over the dirty part, from an offset on, every key is noted with its last offset."""

    def __init__(self, offsets: OffsetMap, aborted: Iterable[AbortedRange], *, start_offset: int) -> None:
        self._offsets = offsets
        self._transactions = CleanedTransactions(each for each in aborted if each.last_offset >= start_offset)
        self._start_offset = start_offset

    def note(self, data: bytes, position: int) -> Noted:
        start = position
        count = 0
        for at, header in _batches(data, position):
            if header.attributes & CONTROL:
                self._transactions.is_over(header, read_marker(data, at, header))
            elif not self._transactions.is_aborted(header) and not self._put(data, at, header):
                return Noted(at - start, count, True)
            if header.last_offset >= self._start_offset:
                self._offsets.latest_offset = header.last_offset
            position = at + header.size_bytes
            count += 1
        return Noted(position - start, count, False)

    def _put(self, data: bytes, position: int, header: BatchHeader) -> bool:
        """Note the keys of a batch; False if they do not all fit."""
        if not header.record_count or header.last_offset < self._start_offset:
            return True
        return self._offsets.put(
            _payload(data, position, header),
            record_count=header.record_count,
            base_offset=header.base_offset,
            start_offset=self._start_offset,
        )


class BatchFilter:
    """The second pass: over all that lies below the bound, from the first segment on."""

    def __init__(
        self,
        offsets: OffsetMap,
        aborted: Iterable[AbortedRange],
        last_batches: Mapping[int, LastBatch],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = CleanedTransactions(aborted)
        self._last_batches = last_batches
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, HORIZON_MS_MAX)
        # Where the segment ends that is being made. Its last batch stays, empty if need be, so that what the segment
        # covers can be told from the segment, by recovery too, and no gap opens between it and the next.
        self.end_offset = NO_OFFSET

    def keep(self, data: bytes, position: int) -> Kept:
        start = position
        parts: list[Buffer] = []
        headers: list[BatchHeader] = []
        whole = memoryview(data)
        same_from = position  # what was kept as it is since then is copied in one piece
        is_changed = False
        count = 0
        for at, header in _batches(data, position):
            position = at + header.size_bytes
            count += 1
            kept = self._kept(data, at, header)
            if kept is data:
                headers.append(header)
                continue
            is_changed = True
            if same_from < at:
                parts.append(whole[same_from:at])
            same_from = position
            if kept is not None:
                parts.append(kept)
                headers.append(read_header(kept))
        if same_from < position:
            parts.append(whole[same_from:position])
        aborted, self._transactions.still_aborted = self._transactions.still_aborted, []
        return Kept(position - start, count, b"".join(parts), headers, aborted, is_changed)

    def _kept(self, data: bytes, position: int, header: BatchHeader) -> Buffer | None:
        """The batch that takes this one's place: ``data`` itself if it stays as it is, None if it goes."""
        if header.attributes & CONTROL:
            is_over = self._transactions.is_over(header, read_marker(data, position, header))
            is_past = header.has_delete_horizon and header.base_timestamp <= self._now_ms
            if (is_over and is_past) or not header.record_count:
                return self._emptied(data, header)
            if is_over and not header.has_delete_horizon:
                payload = _payload(data, position, header)
                keep = bytearray(b"\1") * header.record_count
                return _rewritten(header, payload, keep, header.record_count, header.max_timestamp, self._horizon_ms)
            return data
        if self._transactions.is_aborted(header) or not header.record_count:
            return self._emptied(data, header)
        if header.base_offset > self._offsets.latest_offset:
            return data
        return self._filtered(data, position, header)

    def _filtered(self, data: bytes, position: int, header: BatchHeader) -> Buffer | None:
        payload = _payload(data, position, header)
        keep = bytearray(header.record_count)
        has_horizon = header.has_delete_horizon
        count, tombstone_count, least, most = self._offsets.mark(
            payload,
            base_offset=header.base_offset,
            keeps_tombstones=not has_horizon or self._now_ms < header.base_timestamp,
            keep=keep,
        )
        if count == 0:
            return self._emptied(data, header)
        # A tombstone whose time is further from the horizon than 64 bits can say stays for good.
        needs_horizon = tombstone_count > 0 and not has_horizon and header.base_timestamp + least > -HORIZON_MS_MAX
        if count == header.record_count and not needs_horizon:
            return data
        max_timestamp = header.max_timestamp if header.uses_append_time else header.base_timestamp + most
        horizon_ms = self._horizon_ms if needs_horizon else None
        return _rewritten(header, payload, keep, count, max_timestamp, horizon_ms)

    def _emptied(self, data: bytes, header: BatchHeader) -> Buffer | None:
        """No record of the batch stays; its header does if it is all there is of a producer's state or of the end."""
        if not (self._is_last_of_producer(header) or header.next_offset == self.end_offset):
            return None
        if header.size_bytes == HEADER_BYTES and not header.record_count:
            return data
        return _sealed(
            bytearray(HEADER_BYTES),
            header,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON),
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=header.max_timestamp,
            record_count=0,
        )

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        if header.producer_id < 0:
            return False
        last = self._last_batches.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch


def _rewritten(
    header: BatchHeader, payload: Buffer, keep: bytearray, count: int, max_timestamp: int, horizon_ms: int | None
) -> bytearray:
    """The batch with the records that are marked, compressed as it was; with a horizon, it becomes the base time."""
    base_timestamp = header.base_timestamp if horizon_ms is None else horizon_ms
    plain = copy_kept(payload, keep, HEADER_BYTES, header.base_timestamp - base_timestamp)
    codec = header.codec
    if codec:
        with memoryview(plain) as view:
            packed = compress(codec, view[HEADER_BYTES:])
        plain[HEADER_BYTES:] = packed
    return _sealed(
        plain,
        header,
        attributes=header.attributes | (0 if horizon_ms is None else DELETE_HORIZON),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=count,
    )


def _sealed(
    batch: bytearray,
    header: BatchHeader,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytearray:
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LENGTH_OVERHEAD,
        header.leader_epoch,
        MAGIC,
        0,
        attributes,
        header.last_offset_delta,
        base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        record_count,
    )
    seal(batch, 0)
    return batch
