"""Record batches as Arrow columns and back, without a Python object per record.

The columns are those of Spark's Kafka source. The loops live in :mod:`barnabas.wire.record_codec` and
:mod:`barnabas.wire.record_encoder`, which fill and read plain buffers; pyarrow, an optional dependency, is imported on
first use. The client's columnar face and the Spark connector call this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Unpack

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec, record_encoder, scalars
from barnabas.wire.batch import HEADER_BYTES, BatchHeader
from barnabas.wire.columns_headers import Part, arrow, cells, encode_headers, headers_of, headers_type, view
from barnabas.wire.compression import Buffer
from barnabas.wire.records import (
    OFFSET_MAX,
    RECORDS_BYTES_MAX,
    BatchFacts,
    finish_batch,
    payload_of,
)

if TYPE_CHECKING:
    import pyarrow

# The bounds of a binary column are int32, so all the records of one call share this much.
COLUMN_BYTES_MAX: Final = (1 << 31) - 1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

CONSTANTS_MAX: Final = 256
CONSTANT_ROWS_MAX: Final = 1 << 17
_constants: Final[dict[str | int, Any]] = {}


@cache
def schema(*, with_headers: bool = False) -> pyarrow.Schema:
    """The columns of Spark's Kafka source, in its order and with its names."""
    pa = arrow()
    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
    return pa.schema([*fields, ("headers", headers_type())] if with_headers else fields)


def to_arrow(
    buffer: Buffer,
    *,
    topic: str,
    partition: int,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    with_headers: bool = False,
    check_crcs: bool = True,
    keep: Callable[[BatchHeader], bool] | None = None,
    size_bytes_max: int = RECORDS_BYTES_MAX,
) -> pyarrow.RecordBatch:
    """All complete batches of ``buffer`` as one record batch.

    Control batches and those ``keep`` refuses (aborted ones, say) are left out, and so are records outside of
    ``start_offset`` to ``end_offset``. ``size_bytes_max`` bounds what one batch may decompress to.
    """
    pa = arrow()
    payloads: list[tuple[BatchHeader, Buffer]] = []
    for position, header in batch.iterate(buffer):
        if header.is_control or header.last_offset < start_offset or header.base_offset >= end_offset:
            continue
        if keep is not None and not keep(header):
            continue
        if check_crcs and not batch.crc_matches(buffer, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
        payloads.append((header, payload_of(buffer, position, header, size_bytes_max=size_bytes_max)))

    spots = arrow().allocate_buffer(8 * _rows_max(payloads)) if with_headers else None
    key, value, offset, timestamp, parts, rows = _fill(payloads, start_offset, end_offset, spots)
    arrays = [
        key,
        value,
        _constant(topic, rows),
        _constant(partition, rows),
        offset,
        timestamp,
        _timestamp_types(parts, rows),
    ]
    if with_headers:
        arrays.append(headers_of(parts, spots, rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(with_headers=with_headers))


def _rows_max(payloads: list[tuple[BatchHeader, Buffer]]) -> int:
    for header, payload in payloads:
        if header.record_count > len(payload) // record_codec.RECORD_BYTES_MIN:
            raise CorruptBatch(f"{len(payload)} bytes cannot hold {header.record_count} records")
    return sum(header.record_count for header, _ in payloads)


def _fill(
    payloads: list[tuple[BatchHeader, Buffer]], start_offset: int, end_offset: int, spots: Any
) -> tuple[Any, ...]:
    """Arrays of keys, values, offsets and timestamps; which batch begins at which row; how many rows there are."""
    pa = arrow()
    rows_max = _rows_max(payloads)
    size_bytes = sum(len(payload) for _, payload in payloads)
    if size_bytes > COLUMN_BYTES_MAX:
        raise ValueError(f"{size_bytes} bytes of records are too many for one set of columns: pass fewer batches")
    offsets, timestamps = pa.allocate_buffer(8 * rows_max), pa.allocate_buffer(8 * rows_max)
    keys, values = _BytesBuffers(rows_max, size_bytes), _BytesBuffers(rows_max, size_bytes)
    columns = (view(offsets, "q"), view(timestamps, "q"), keys.column(), values.column())
    places = None if spots is None else view(spots, "i")
    parts: list[Part] = []
    row = 0
    for header, payload in payloads:
        parts.append(Part(header, payload, row))
        row = record_codec.fill(payload, header, start_offset, end_offset, columns, row, places)
    return (
        keys.array(row),
        values.array(row),
        pa.Array.from_buffers(pa.int64(), row, [None, offsets], null_count=0),
        pa.Array.from_buffers(pa.timestamp("us", tz="UTC"), row, [None, timestamps], null_count=0),
        parts,
        row,
    )


class _BytesBuffers:
    """What a binary column is made of, at the largest it can become: memory that is not written to is not used."""

    def __init__(self, rows_max: int, size_bytes_max: int) -> None:
        pa = arrow()
        self.bounds = pa.allocate_buffer(4 * (rows_max + 1))
        self.data = pa.allocate_buffer(size_bytes_max, resizable=True)
        self.bits = bytearray(b"\xff") * ((rows_max + 7) // 8)

    def column(self) -> Any:
        return record_codec.BytesColumn(view(self.bounds, "i"), view(self.data, "B"), self.bits)

    def array(self, rows: int) -> pyarrow.BinaryArray:
        """The array, after which nothing may be written any more: the bytes move when they shrink."""
        pa = arrow()
        self.data.resize(view(self.bounds, "i")[rows], shrink_to_fit=True)
        return pa.Array.from_buffers(pa.binary(), rows, [pa.py_buffer(self.bits), self.bounds, self.data])


def _timestamp_types(parts: list[Part], rows: int) -> pyarrow.Array:
    ends = [*(part.row for part in parts[1:]), rows]
    kinds = [LOG_APPEND_TIME if part.header.uses_append_time else CREATE_TIME for part in parts]
    if len(set(kinds)) <= 1:
        return _constant(kinds[0] if kinds else CREATE_TIME, rows)
    arrays = [_constant(kind, end - part.row) for kind, part, end in zip(kinds, parts, ends, strict=True)]
    return arrow().concat_arrays(arrays)


def _constant(content: str | int, rows: int) -> pyarrow.Array:
    """A column in which every row is the same: text, or an int32. Columns of one content share their memory."""
    known = _constants.get(content)
    if known is None or len(known) < rows:
        size = max(rows, min(2 * len(known), CONSTANT_ROWS_MAX)) if known is not None else rows
        known = arrow().repeat(scalars.text(content) if isinstance(content, str) else scalars.int32(content), size)
        if len(known) > CONSTANT_ROWS_MAX:
            return known
        while len(_constants) >= CONSTANTS_MAX:
            _constants.pop(next(iter(_constants)))
        _constants[content] = known
    return known.slice(0, rows)


def encode_columns(
    value: pyarrow.Array,
    *,
    key: pyarrow.Array | None = None,
    timestamp: pyarrow.Array | int,
    headers: pyarrow.Array | None = None,
    **facts: Unpack[BatchFacts],
) -> bytearray:
    """One sealed batch of the rows; ``timestamp`` is a column or one number of milliseconds for all rows."""
    rows = len(value)
    if not rows:
        raise ValueError("a batch has at least one record")
    if key is None:
        key = arrow().nulls(rows, arrow().binary())
    if len(key) != rows or (headers is not None and len(headers) != rows):
        raise ValueError("the columns are not equally long")
    times = _milliseconds(timestamp, rows)
    tails = None if headers is None else encode_headers(headers)
    plain, base, largest = record_encoder.encode_columns(times, cells(key), cells(value), HEADER_BYTES, tails)
    return finish_batch(plain, rows, base, largest, **facts)


def _milliseconds(timestamp: Any, rows: int) -> memoryview:
    pa = arrow()
    if isinstance(timestamp, int):
        timestamp = pa.repeat(scalars.int64(timestamp), rows)
    elif pa.types.is_timestamp(timestamp.type):
        # Spark's timestamps are microseconds; what is finer than a millisecond has no place in a record.
        timestamp = timestamp.cast(pa.timestamp("ms", tz=timestamp.type.tz), safe=False).cast(pa.int64())
    if len(timestamp) != rows or timestamp.null_count:
        raise ValueError("every row needs a timestamp")
    timestamp = timestamp.cast(pa.int64())
    return view(timestamp.buffers()[1], "q")[timestamp.offset : timestamp.offset + rows]
