"""What a batch must satisfy before a leader appends it, and the few changes the broker makes to it.

Pure: bytes and rules in, a batch that may be written or a protocol error out. Offsets, epochs and sequences are the
log's business. The produce handler, the coordinators and the metadata log call ``validate``, for big compressed
batches in a worker.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch, WireError
from barnabas.model.ids import NO_TIMESTAMP
from barnabas.model.settings import INT32_MAX, INT64_MAX
from barnabas.storage.settings import TopicSettings
from barnabas.wire.batch import (
    APPEND_TIME,
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LENGTH_MIN,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    new_tuple,
    read_header,
    seal,
    unpack_header,
)
from barnabas.wire.compression import Codec, TooLarge, decompress
from barnabas.wire.record_codec import check
from barnabas.wire.records import decode_batch, encode_batch
from barnabas.world.disk import Buffer

UNCOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024  # what one batch may hold when unpacked
WORKER_BYTES_MIN: Final = 64 * 1024  # larger compressed batches are not unpacked on the loop
INLINE_BYTES_MAX: Final = 256 * 1024  # what the batches of one request are unpacked to on the loop: about 1 ms of gzip
RECORD_ERRORS_MAX: Final = 100  # how many bad records one answer names

LAST_CODEC: Final = int(max(Codec))
CONTROL_OR_CODEC: Final = CONTROL | CODEC_MASK  # above the last codec, this part of the attributes is no client's

_MAGIC_POSITION: Final = 16
_ATTRIBUTES: Final = Struct(">h")
_ATTRIBUTES_POSITION: Final = 21
CODEC_POSITION: Final = 22  # the byte of the attributes that names the codec
_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35

_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Origin(enum.Enum):
    """Who wants to append: what is asked of a client is not asked of the broker's own parts."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT = "raft"


class InvalidRecords(ApiError):
    """Some records are wrong, so none is taken; ``record_errors`` says which and why."""

    def __init__(self, error: WireError, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(error, message)
        self.record_errors = record_errors


class NeedsWorker(Exception):  # no error: the batch is to be validated in a worker
    """A batch unpacks to more than the event loop may unpack for one request."""


@dataclass(slots=True)
class Unpacking:
    """How many more bytes a request may unpack on the event loop."""

    left_bytes: int = INLINE_BYTES_MAX

    def unpack(self, codec: int, payload: Buffer) -> bytes:
        """The plain bytes; NeedsWorker if they are more than is left."""
        try:
            plain = decompress(codec, payload, size_bytes_max=self.left_bytes)
        except TooLarge:
            raise NeedsWorker from None
        self.left_bytes -= len(plain)
        return plain


@dataclass(frozen=True, slots=True)
class Rules:
    """The facts of a topic's settings that validation needs."""

    is_client: bool
    size_bytes_max: int
    keys_required: bool
    uses_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    codec: Codec | None  # None: as the producer sent it
    level: int | None

    @classmethod
    def of(cls, settings: TopicSettings, *, origin: Origin = Origin.CLIENT) -> Rules:
        codec = _CODECS.get(settings.compression_type)
        levels = {
            Codec.GZIP: settings.compression_gzip_level,
            Codec.LZ4: settings.compression_lz4_level,
            Codec.ZSTD: settings.compression_zstd_level,
        }
        return cls(
            is_client=origin is Origin.CLIENT,
            size_bytes_max=INT32_MAX if origin is Origin.RAFT else settings.max_message_bytes,
            keys_required=settings.is_compacted,
            uses_append_time=settings.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=settings.message_timestamp_before_max_ms,
            timestamp_after_max_ms=settings.message_timestamp_after_max_ms,
            codec=codec,
            level=levels.get(codec) if codec is not None else None,
        )


class Validated(NamedTuple):
    """One batch that may be appended. ``records`` is writable: the log puts offset and epoch into it."""

    records: bytearray | memoryview
    header: BatchHeader
    max_timestamp: int
    append_time_ms: int = NO_TIMESTAMP
    is_client: bool = True


def is_packed(records: Buffer) -> bool:
    """Whether a batch is compressed."""
    return len(records) >= HEADER_BYTES and records[CODEC_POSITION] & CODEC_MASK != 0


def is_transactional(records: Buffer) -> bool:
    """Whether a batch belongs to a transaction."""
    return len(records) >= HEADER_BYTES and records[CODEC_POSITION] & TRANSACTIONAL != 0


def needs_worker(records: Buffer) -> bool:
    """Whether a compressed batch is so large that it is not even tried to unpack it on the event loop."""
    return len(records) > WORKER_BYTES_MIN and is_packed(records)


def validate(records: Buffer, rules: Rules, *, now_ms: int, unpacking: Unpacking | None = None) -> Validated:
    """The batch as it may be appended; ApiError if it may not.

    On the event loop, ``unpacking`` bounds what is unpacked; NeedsWorker if the batch needs more.
    """
    size_bytes = len(records)
    if size_bytes < HEADER_BYTES:
        raise _no_batch(records)
    header = new_tuple(BatchHeader, unpack_header(records))
    base_offset, length, _, magic, crc, attributes, delta, base_timestamp, stated, producer_id, _, sequence, count = (
        header
    )
    if magic != MAGIC or length < LENGTH_MIN or count < 0 or delta < 0:
        raise _no_header(records)
    if length + LENGTH_OVERHEAD != size_bytes:
        raise _not_one_batch(header, size_bytes)
    codec = attributes & CODEC_MASK
    # All that can be wrong with a client's header in one question; the answer is worded elsewhere.
    if rules.is_client and (
        base_offset
        or not count
        or delta + 1 != count
        or attributes & CONTROL_OR_CODEC > LAST_CODEC
        or producer_id >= 0 > sequence
    ):
        raise _not_of_a_client(header)
    if size_bytes > rules.size_bytes_max:
        raise _too_large(size_bytes, rules)
    view = records if type(records) is memoryview else memoryview(records)
    if crc32c(view[CHECKED_FROM:]) != crc:
        raise ApiError(errors.CORRUPT_MESSAGE, "the batch fails its checksum")
    payload: Buffer = view[HEADER_BYTES:]
    try:
        if codec:
            if unpacking is not None:
                payload = unpacking.unpack(codec, payload)
            else:
                payload = decompress(codec, payload, size_bytes_max=UNCOMPRESSED_BYTES_MAX)
        delta_max, _, is_dense, keyless = check(payload, count, base_timestamp, rules.keys_required)
    except CorruptBatch as error:
        # The checksum fits, so the sender meant it this way: sending it again will not help.
        raise ApiError(errors.INVALID_RECORD, str(error)) from error
    if keyless:
        raise _keyless(keyless)
    if attributes & APPEND_TIME:
        raise _producer_set_append_time(header)
    append_time_ms = NO_TIMESTAMP
    if rules.uses_append_time:
        max_timestamp = append_time_ms = now_ms
    else:
        max_timestamp = base_timestamp + delta_max if count else NO_TIMESTAMP
        if max_timestamp - now_ms > rules.timestamp_after_max_ms or rules.timestamp_before_max_ms != INT64_MAX:
            _check_timestamps(records, rules, now_ms)
    target = codec if rules.codec is None or (attributes & CONTROL and not codec) else rules.codec
    if target != codec or not is_dense:
        return _rebuilt(records, header, rules, target, now_ms)
    writable = bytearray(records) if isinstance(records, bytes) or view.readonly else records
    if stated != max_timestamp or append_time_ms >= 0:
        header = _restamped(writable, header, max_timestamp, uses_append_time=rules.uses_append_time)
    return new_tuple(Validated, (writable, header, max_timestamp, append_time_ms, rules.is_client))


def _no_batch(records: Buffer) -> ApiError:
    if len(records) > _MAGIC_POSITION and records[_MAGIC_POSITION] != MAGIC:
        return ApiError(errors.INVALID_RECORD, f"batches have magic {MAGIC}, not {records[_MAGIC_POSITION]}")
    return ApiError(errors.INVALID_RECORD, "there is no batch")


def _no_header(records: Buffer) -> ApiError:
    if records[_MAGIC_POSITION] != MAGIC:
        return _no_batch(records)
    try:
        header = read_header(records)
    except CorruptBatch as error:
        return ApiError(errors.CORRUPT_MESSAGE, str(error))
    raise AssertionError(f"nothing is wrong with {header}")


def _not_one_batch(header: BatchHeader, size_bytes: int) -> ApiError:
    is_cut = header.size_bytes > size_bytes
    return ApiError(errors.INVALID_RECORD, "the batch is cut off" if is_cut else "there is more than one batch")


def _not_of_a_client(header: BatchHeader) -> ApiError:
    base_offset, _, _, _, _, attributes, delta, _, _, producer_id, _, sequence, count = header
    if base_offset != 0:
        return ApiError(errors.INVALID_RECORD, f"a producer's batch starts at offset 0, not {base_offset}")
    if count <= 0 or delta + 1 != count:
        return ApiError(errors.INVALID_RECORD, f"{count} records do not end at offset delta {delta}")
    if attributes & CONTROL:
        return ApiError(errors.INVALID_RECORD, "clients do not write control records")
    if producer_id >= 0 and sequence < 0:
        return ApiError(errors.INVALID_RECORD, f"producer {producer_id} sent the sequence {sequence}")
    return ApiError(errors.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {attributes & CODEC_MASK}")


def _too_large(size_bytes: int, rules: Rules) -> ApiError:
    return ApiError(errors.MESSAGE_TOO_LARGE, f"the batch has {size_bytes} bytes and may have {rules.size_bytes_max}")


def _keyless(indexes: tuple[int, ...]) -> InvalidRecords:
    return InvalidRecords(
        errors.INVALID_RECORD,
        "a compacted topic takes no record without a key",
        [(index, "the record has no key") for index in indexes[:RECORD_ERRORS_MAX]],
    )


def _producer_set_append_time(header: BatchHeader) -> InvalidRecords:
    count = min(header.record_count, RECORD_ERRORS_MAX)
    return InvalidRecords(
        errors.INVALID_TIMESTAMP,
        "the timestamp type LogAppendTime is the broker's to set",
        [(index, "the record comes with the timestamp type LogAppendTime") for index in range(count)],
    )


def _check_timestamps(records: Buffer, rules: Rules, now_ms: int) -> None:
    """The slow way, record by record, when some timestamp may be out of range."""
    earliest, latest = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
    wrong = [
        (index, f"the timestamp {record.timestamp} is not within [{earliest}, {latest}]")
        for index, record in enumerate(decode_batch(records, size_bytes_max=UNCOMPRESSED_BYTES_MAX))
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    ]
    if wrong:
        raise InvalidRecords(
            errors.INVALID_TIMESTAMP,
            "the topic takes no timestamps that far from the broker's clock",
            wrong[:RECORD_ERRORS_MAX],
        )


def _rebuilt(records: Buffer, header: BatchHeader, rules: Rules, codec: int, now_ms: int) -> Validated:
    """The same records in a new batch: another codec, or offsets put in order."""
    batch = encode_batch(
        [
            (record.timestamp, record.key, record.value, record.headers)
            for record in decode_batch(records, size_bytes_max=UNCOMPRESSED_BYTES_MAX)
        ],
        codec=codec,
        level=rules.level if rules.codec == codec else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        append_time=now_ms if rules.uses_append_time else None,
    )
    if len(batch) > rules.size_bytes_max:
        raise _too_large(len(batch), rules)
    rebuilt = read_header(batch)
    append_time_ms = now_ms if rules.uses_append_time else NO_TIMESTAMP
    return Validated(batch, rebuilt, rebuilt.max_timestamp, append_time_ms, rules.is_client)


def _restamped(
    records: bytearray | memoryview, header: BatchHeader, max_timestamp: int, *, uses_append_time: bool
) -> BatchHeader:
    """Set the batch's largest timestamp in place; with append time it counts for every record."""
    attributes = header.attributes | APPEND_TIME if uses_append_time else header.attributes
    _ATTRIBUTES.pack_into(records, _ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(records, _MAX_TIMESTAMP_POSITION, max_timestamp)
    seal(records, 0)
    return read_header(records)
