"""The log's side of transactions: the markers that end them and the index of those that were aborted.

What a producer may do is checked in ``producers``; the coordinator decides outcomes. A segment keeps one
``.txnindex`` of 34-byte entries, only when something was aborted, and readers with read_committed are told of the
entries that overlap what they read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.model.errors import CorruptBatch
from barnabas.storage.index import CorruptIndex
from barnabas.wire.batch import BatchHeader
from barnabas.wire.records import decode_batch
from barnabas.world.disk import Buffer

ABORTED_ENTRY_BYTES: Final = 34
ABORTED_VERSION: Final = 0
ABORT: Final = 0
COMMIT: Final = 1

_ABORTED: Final = struct.Struct(">hqqqq")
_MARKER_KEY: Final = struct.Struct(">hh")  # version, type
_MARKER_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch


class AbortedTransaction(NamedTuple):
    """What a reader needs: from this offset on, the producer's records are void until its next marker."""

    producer_id: int
    first_offset: int


class AbortedRange(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # of the marker
    last_stable_offset: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Marker(NamedTuple):
    """The record that ends a transaction."""

    is_abort: bool
    coordinator_epoch: int
    timestamp: int


def read_marker(buffer: Buffer, position: int, header: BatchHeader) -> Marker | None:
    """The marker of a control batch; None if compaction has emptied it or it is no transaction's."""
    if header.record_count == 0:
        return None
    record = decode_batch(buffer, position)[0]
    key, value = record.key, record.value
    if key is None or len(key) < _MARKER_KEY.size:
        raise CorruptBatch("a control record has no type")
    kind = _MARKER_KEY.unpack_from(key)[1]
    if kind not in (ABORT, COMMIT):
        return None
    if value is None or len(value) < _MARKER_VALUE.size:
        raise CorruptBatch("a transaction marker has no coordinator epoch")
    return Marker(kind == ABORT, _MARKER_VALUE.unpack_from(value)[1], record.timestamp)


def encode_aborted(ranges: Iterable[AbortedRange]) -> bytes:
    return b"".join(_ABORTED.pack(ABORTED_VERSION, *entry) for entry in ranges)


def decode_aborted(data: Buffer, *, base_offset: int) -> list[AbortedRange]:
    """The entries of a transaction index; CorruptIndex if they cannot belong to the segment."""
    if len(data) % ABORTED_ENTRY_BYTES:
        raise CorruptIndex(f"{len(data)} bytes are not whole entries")
    ranges = []
    for version, *entry in _ABORTED.iter_unpack(data):
        aborted = AbortedRange(*entry)
        if version > ABORTED_VERSION or aborted.last_offset < base_offset:
            raise CorruptIndex(f"{aborted} does not belong to the segment at {base_offset}")
        ranges.append(aborted)
    return ranges


def overlapping(indexes: Iterable[Iterable[AbortedRange]], start: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions within [start, end), from the indexes of segments in order; none is read in vain."""
    found = []
    for ranges in indexes:
        for aborted in ranges:
            if aborted.last_offset >= start and aborted.first_offset < end:
                found.append(AbortedTransaction(aborted.producer_id, aborted.first_offset))
            if aborted.last_stable_offset >= end:
                return found
    return found
