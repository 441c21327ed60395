"""Record batches as Arrow columns and back, without a Python object per record.

The columns are those of Spark's Kafka source. The loops live in :mod:`barnabas.wire.record_codec` and
:mod:`barnabas.wire.record_encoder`, which fill and read plain buffers; pyarrow, an optional dependency, is imported on
first use. The client's columnar face and the Spark connector call this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec, record_encoder
from barnabas.wire.batch import HEADER_BYTES, BatchHeader
from barnabas.wire.compression import Buffer
from barnabas.wire.records import (
    OFFSET_MAX,
    RECORDS_BYTES_MAX,
    BatchFacts,
    Record,
    finish_batch,
    payload_of,
)

if TYPE_CHECKING:
    import pyarrow

# The bounds of a binary column are int32, so all the records of one call share this much.
COLUMN_BYTES_MAX: Final = (1 << 31) - 1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
MISSING: Final = "columns need pyarrow: pip install 'barnabas[arrow]'"


class _Part(NamedTuple):
    header: BatchHeader
    payload: Buffer
    row: int  # where its rows begin


@cache
def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyarrow


@cache
def headers_type() -> pyarrow.DataType:
    pa = _arrow()
    return pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


@cache
def schema(*, with_headers: bool = False) -> pyarrow.Schema:
    """The columns of Spark's Kafka source, in its order and with its names."""
    pa = _arrow()
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
    pa = _arrow()
    payloads: list[tuple[BatchHeader, Buffer]] = []
    for position, header in batch.iterate(buffer):
        if header.is_control or header.last_offset < start_offset or header.base_offset >= end_offset:
            continue
        if keep is not None and not keep(header):
            continue
        if check_crcs and not batch.crc_matches(buffer, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
        payloads.append((header, payload_of(buffer, position, header, size_bytes_max=size_bytes_max)))

    key, value, offset, timestamp, parts, rows = _fill(payloads, start_offset, end_offset)
    arrays = [
        key,
        value,
        pa.repeat(pa.scalar(topic, pa.string()), rows),
        pa.repeat(pa.scalar(partition, pa.int32()), rows),
        offset,
        timestamp,
        _timestamp_types(parts, rows),
    ]
    if with_headers:
        arrays.append(_headers(parts, start_offset, end_offset))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(with_headers=with_headers))


def _fill(payloads: list[tuple[BatchHeader, Buffer]], start_offset: int, end_offset: int) -> tuple[Any, ...]:
    """Arrays of keys, values, offsets and timestamps; which batch begins at which row; how many rows there are."""
    pa = _arrow()
    rows_max = size_bytes = 0
    for header, payload in payloads:
        if header.record_count > len(payload) // record_codec.RECORD_BYTES_MIN:
            raise CorruptBatch(f"{len(payload)} bytes cannot hold {header.record_count} records")
        rows_max += header.record_count
        size_bytes += len(payload)
    if size_bytes > COLUMN_BYTES_MAX:
        raise ValueError(f"{size_bytes} bytes of records are too many for one set of columns: pass fewer batches")
    offsets, timestamps = pa.allocate_buffer(8 * rows_max), pa.allocate_buffer(8 * rows_max)
    keys, values = _BytesBuffers(rows_max, size_bytes), _BytesBuffers(rows_max, size_bytes)
    columns = (_view(offsets, "q"), _view(timestamps, "q"), keys.column(), values.column())
    parts: list[_Part] = []
    row = 0
    for header, payload in payloads:
        parts.append(_Part(header, payload, row))
        row = record_codec.fill(payload, header, start_offset, end_offset, columns, row)
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
        pa = _arrow()
        self.bounds = pa.allocate_buffer(4 * (rows_max + 1))
        self.data = pa.allocate_buffer(size_bytes_max, resizable=True)
        self.bits = bytearray(b"\xff") * ((rows_max + 7) // 8)

    def column(self) -> Any:
        return record_codec.BytesColumn(_view(self.bounds, "i"), _view(self.data, "B"), self.bits)

    def array(self, rows: int) -> pyarrow.BinaryArray:
        """The array, after which nothing may be written any more: the bytes move when they shrink."""
        pa = _arrow()
        self.data.resize(_view(self.bounds, "i")[rows], shrink_to_fit=True)
        return pa.Array.from_buffers(pa.binary(), rows, [pa.py_buffer(self.bits), self.bounds, self.data])


def _view(buffer: Any, kind: str) -> memoryview:
    return memoryview(buffer).cast("B").cast(kind)  # type: ignore[call-overload, no-any-return]


def _timestamp_types(parts: list[_Part], rows: int) -> pyarrow.Array:
    pa = _arrow()
    arrays = []
    for index, part in enumerate(parts):
        end = parts[index + 1].row if index + 1 < len(parts) else rows
        kind = LOG_APPEND_TIME if part.header.uses_append_time else CREATE_TIME
        arrays.append(pa.repeat(pa.scalar(kind, pa.int32()), end - part.row))
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.int32())


def _headers(parts: list[_Part], start_offset: int, end_offset: int) -> pyarrow.ListArray:
    """The headers of the rows that :func:`_fill` has made; a row without any is null, as in Spark."""
    pa = _arrow()
    bounds: list[int | None] = []
    names: list[str] = []
    contents: list[bytes | None] = []
    for part in parts:
        for record in record_codec.decode(part.payload, part.header, Record):
            if start_offset <= record.offset < end_offset:
                bounds.append(len(names) if record.headers else None)
                names.extend(name for name, _ in record.headers)
                contents.extend(content for _, content in record.headers)
    bounds.append(len(names))
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(contents, pa.binary())], fields=list(headers_type().value_type)
    )
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), pairs, type=headers_type())


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
        key = _arrow().nulls(rows, _arrow().binary())
    if len(key) != rows or (headers is not None and len(headers) != rows):
        raise ValueError("the columns are not equally long")
    times = _milliseconds(timestamp, rows)
    if headers is None:
        plain, base, largest = record_encoder.encode_columns(times, _cells(key), _cells(value), HEADER_BYTES)
    else:
        pairs = ([(pair["key"], pair["value"]) for pair in row or ()] for row in headers.to_pylist())
        records = list(zip(times, _binary(key).to_pylist(), _binary(value).to_pylist(), pairs, strict=True))
        plain, base, largest = record_encoder.encode(records, HEADER_BYTES)
    return finish_batch(plain, rows, base, largest, **facts)


def _milliseconds(timestamp: Any, rows: int) -> memoryview:
    pa = _arrow()
    if isinstance(timestamp, int):
        timestamp = pa.repeat(pa.scalar(timestamp, pa.int64()), rows)
    elif pa.types.is_timestamp(timestamp.type):
        # Spark's timestamps are microseconds; what is finer than a millisecond has no place in a record.
        timestamp = timestamp.cast(pa.timestamp("ms", tz=timestamp.type.tz), safe=False).cast(pa.int64())
    if len(timestamp) != rows or timestamp.null_count:
        raise ValueError("every row needs a timestamp")
    timestamp = timestamp.cast(pa.int64())
    return _view(timestamp.buffers()[1], "q")[timestamp.offset : timestamp.offset + rows]


def _binary(column: Any) -> Any:
    pa = _arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type in (pa.binary(), pa.string()) else column.cast(pa.binary())


def _cells(column: Any) -> tuple[Any, ...]:
    column = _binary(column)
    bits, bounds, data = column.buffers()
    start = column.offset
    return (
        _view(bounds, "i")[start : start + len(column) + 1],
        b"" if data is None else _view(data, "B"),
        _view(bits, "B") if column.null_count else None,
        start,
    )
