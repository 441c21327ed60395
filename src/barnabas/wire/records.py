"""Records and the batches (magic 2) around them: check, decode and encode, with compression and checksum.

The loops over records live in :mod:`barnabas.wire.record_codec`, Arrow columns in :mod:`barnabas.wire.columns`. The
broker calls :func:`check` on what producers send and otherwise never makes records of bytes; clients, coordinators and
the metadata log do.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec
from barnabas.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD, BatchHeader
from barnabas.wire.compression import Buffer, Codec, compress, decompress

COMPILED: Final[bool] = record_codec.COMPILED

Header = tuple[str, bytes | None]
# What a producer knows of a record before it has an offset: timestamp, key, value, headers.
Unplaced = tuple[int, bytes | None, bytes | None, Iterable[Header]]

# Uncompressed records of one batch: above what a request may carry, so only a bomb is larger.
RECORDS_BYTES_MAX: Final = 128 << 20
OFFSET_MAX: Final = (1 << 63) - 1
LENGTH_MAX: Final = (1 << 31) - 1
NO_TIMESTAMP: Final = -1


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class RecordFacts(NamedTuple):
    max_timestamp: int
    max_timestamp_delta_offset: int  # the offset delta of the first record that has the largest timestamp
    is_dense: bool
    keyless: tuple[int, ...]


def check(records_payload: Buffer, *, record_count: int, base_timestamp: int, keys_required: bool) -> RecordFacts:
    """What the broker must know of plain records; :class:`CorruptBatch` unless they are exactly what they say."""
    delta, offset_delta, is_dense, keyless = record_codec.check(
        records_payload, record_count, base_timestamp, keys_required
    )
    max_timestamp = base_timestamp + delta if record_count else NO_TIMESTAMP
    return RecordFacts(max_timestamp, offset_delta, is_dense, keyless)


def payload_of(buffer: Buffer, position: int, header: BatchHeader, *, size_bytes_max: int) -> Buffer:
    """The uncompressed records of the batch at ``position``: a view if they are plain."""
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatch(f"the batch of {header.size_bytes} bytes is cut off at {len(buffer) - position}")
    payload = memoryview(buffer)[position + HEADER_BYTES : end]
    codec = header.codec
    if codec is Codec.NONE:
        return payload
    return decompress(codec, payload, size_bytes_max=size_bytes_max)


def decode_batch(buffer: Buffer, position: int = 0, *, size_bytes_max: int = RECORDS_BYTES_MAX) -> list[Record]:
    """The records of the batch at ``position``; its checksum is not looked at (:func:`batch.crc_matches` does)."""
    return _decode(buffer, position, batch.read_header(buffer, position), size_bytes_max)


def decode_all(buffer: Buffer, *, size_bytes_max: int = RECORDS_BYTES_MAX) -> list[Record]:
    """The records of all complete batches, control batches included."""
    records: list[Record] = []
    for position, header in batch.iterate(buffer):
        records += _decode(buffer, position, header, size_bytes_max)
    return records


def _decode(buffer: Buffer, position: int, header: BatchHeader, size_bytes_max: int) -> list[Record]:
    payload = payload_of(buffer, position, header, size_bytes_max=size_bytes_max)
    if not 0 <= header.base_offset <= OFFSET_MAX - LENGTH_MAX:
        raise CorruptBatch(f"a batch cannot begin at offset {header.base_offset}")
    append_time = header.max_timestamp if header.uses_append_time else None
    # Records hold no cycles, yet a collector that wakes up every 700 of them would halve the speed.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return record_codec.decode(
            payload, header.record_count, header.base_offset, header.base_timestamp, append_time, Record
        )
    finally:
        if was_enabled:
            gc.enable()


def encode_batch(
    records: Sequence[Unplaced],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    leader_epoch: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    append_time: int | None = None,
) -> bytearray:
    """One sealed batch of at least one record, with offsets from ``base_offset`` upwards."""
    if not records:
        raise ValueError("a batch has at least one record")
    plain, base_timestamp, max_timestamp = record_codec.encode(records, HEADER_BYTES)
    attributes = (
        codec
        | (batch.APPEND_TIME if append_time is not None else 0)
        | (batch.TRANSACTIONAL if is_transactional else 0)
        | (batch.CONTROL if is_control else 0)
    )
    if codec:
        with memoryview(plain) as view:
            packed = compress(codec, view[HEADER_BYTES:], level)
        del plain[HEADER_BYTES:]
        plain += packed
    batch.HEADER.pack_into(
        plain,
        0,
        base_offset,
        len(plain) - LENGTH_OVERHEAD,
        leader_epoch,
        batch.MAGIC,
        0,
        attributes,
        len(records) - 1,
        base_timestamp,
        max_timestamp if append_time is None else append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch.seal(plain, 0)
    return plain
