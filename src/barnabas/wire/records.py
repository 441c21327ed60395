"""Records and the batches (magic 2) around them: check, decode and encode, with compression and checksum.

The loops over records live in :mod:`barnabas.wire.record_codec`, Arrow columns in :mod:`barnabas.wire.columns`. The
broker calls :func:`check` on what producers send and otherwise never makes records of bytes; clients, coordinators and
the metadata log do.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypedDict, TypeVar, Unpack

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec, record_encoder
from barnabas.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD, BatchHeader
from barnabas.wire.compression import Buffer, Codec, compress, decompress
from barnabas.wire.warm_memory import WarmMemory

COMPILED: Final[bool] = record_codec.COMPILED

P = TypeVar("P", bound=tuple[object, ...])
Header = tuple[str, bytes | None]
# What a producer knows of a record before it has an offset: timestamp, key, value, headers.
Unplaced = tuple[int, bytes | None, bytes | None, Iterable[Header]]

# Uncompressed records of one batch: above what a request may carry, so only a bomb is larger.
RECORDS_BYTES_MAX: Final = 128 << 20
OFFSET_MAX: Final = (1 << 63) - 1
LENGTH_MAX: Final = (1 << 31) - 1
NO_TIMESTAMP: Final = -1

# One to a process, since the interpreter's memory is one: consumers that take turns use the same arenas.
_warm_memory: Final = WarmMemory()


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
    # Without the detour through the named tuple's constructor, which would cost as much as checking a small batch.
    facts: RecordFacts = tuple.__new__(RecordFacts, (max_timestamp, offset_delta, is_dense, keyless))
    return facts


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


def decode_placed(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    record_type: type[P],
    place: tuple[str, int],
    *,
    size_bytes_max: int = RECORDS_BYTES_MAX,
) -> list[P]:
    """The same as ``record_type``, a named tuple that has topic and partition before what a :class:`Record` has."""
    return _decode(buffer, position, header, size_bytes_max, record_type, place)  # type: ignore[return-value]


def decode_all(buffer: Buffer, *, size_bytes_max: int = RECORDS_BYTES_MAX) -> list[Record]:
    """The records of all complete batches, control batches included."""
    records: list[Record] = []
    for position, header in batch.iterate(buffer):
        records += _decode(buffer, position, header, size_bytes_max)
    return records


def _decode(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    size_bytes_max: int,
    record_type: type = Record,
    place: tuple[str, int] | tuple[()] = (),
) -> list[Record]:
    payload = payload_of(buffer, position, header, size_bytes_max=size_bytes_max)
    if not 0 <= header.base_offset <= OFFSET_MAX - LENGTH_MAX:
        raise CorruptBatch(f"a batch cannot begin at offset {header.base_offset}")
    # Records hold no cycles, yet a collector that wakes up every 700 of them would halve the speed.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        records: list[Record] = record_codec.decode(payload, header, record_type, tuple(place))
        _warm_memory.keep(records, len(place))
        return records
    finally:
        if was_enabled:
            gc.enable()


class BatchFacts(TypedDict, total=False):
    """What a batch says of itself beyond its records; the contract of :func:`encode_batch`'s keywords."""

    base_offset: int
    codec: int
    level: int | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    is_transactional: bool
    is_control: bool
    append_time: int | None


def encode_batch(records: Sequence[Unplaced], **facts: Unpack[BatchFacts]) -> bytearray:
    """One sealed batch of at least one record, with offsets from ``base_offset`` upwards."""
    if not records:
        raise ValueError("a batch has at least one record")
    plain, base_timestamp, max_timestamp = record_encoder.encode(records, HEADER_BYTES)
    return finish_batch(plain, len(records), base_timestamp, max_timestamp, **facts)


def finish_batch(
    plain: bytearray,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
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
    """Makes a sealed batch of encoded records that have room for a header in front of them."""
    attributes = (
        codec
        | (batch.APPEND_TIME if append_time is not None else 0)
        | (batch.TRANSACTIONAL if is_transactional else 0)
        | (batch.CONTROL if is_control else 0)
    )
    if codec:
        with memoryview(plain) as view:
            packed = compress(codec, view[HEADER_BYTES:], level)
        plain = bytearray(HEADER_BYTES)  # what was given stays as it is: it may be sent again under another number
        plain += packed
    length = len(plain) - LENGTH_OVERHEAD
    if length > LENGTH_MAX:
        raise ValueError(f"a batch of {length} bytes is too large")
    batch.HEADER.pack_into(
        plain,
        0,
        base_offset,
        length,
        leader_epoch,
        batch.MAGIC,
        0,
        attributes,
        record_count - 1,
        base_timestamp,
        max_timestamp if append_time is None else append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    batch.seal(plain, 0)
    return plain
