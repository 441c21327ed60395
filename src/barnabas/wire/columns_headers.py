"""The column of headers, and what it shares with the other columns of records.

The loops are those of :mod:`barnabas.wire.record_headers`, which fill and read plain buffers. Only
:mod:`barnabas.wire.columns` calls this; pyarrow is imported on first use.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.wire import record_headers
from barnabas.wire.batch import BatchHeader
from barnabas.wire.compression import Buffer

if TYPE_CHECKING:
    import pyarrow

MISSING: Final = "columns need pyarrow: pip install 'barnabas[arrow]'"
COUNT_BYTES_MAX: Final = 5


class Part(NamedTuple):
    """A batch, and the row at which its records begin."""

    header: BatchHeader
    payload: Buffer
    row: int


@cache
def arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(MISSING) from error
    return pyarrow


@cache
def headers_type() -> pyarrow.DataType:
    pa = arrow()
    return pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))


def view(buffer: Any, kind: str) -> memoryview:
    return memoryview(buffer).cast("B").cast(kind)  # type: ignore[call-overload, no-any-return]


def headers_of(parts: list[Part], spots: Any, rows: int) -> pyarrow.ListArray:
    """The headers of the rows, found at ``spots``; a row without any is null, as in Spark."""
    pa = arrow()
    places = view(spots, "i")
    size_bytes = sum(len(part.payload) for part in parts)
    count_max = record_headers.count(places, rows)
    lists, list_bits = pa.allocate_buffer(4 * (rows + 1)), bytearray(b"\xff") * ((rows + 7) // 8)
    bounds = [pa.allocate_buffer(4 * (count_max + 1)) for _ in range(2)]
    data = [pa.allocate_buffer(size_bytes, resizable=True) for _ in range(2)]
    value_bits = bytearray(b"\xff") * ((count_max + 7) // 8)
    views = [view(each, "i") for each in (lists, *bounds)]
    for each in views:
        each[0] = 0
    columns = (views[0], list_bits, views[1], view(data[0], "B"), views[2], view(data[1], "B"), value_bits)
    count = 0
    for index, part in enumerate(parts):
        end = parts[index + 1].row if index + 1 < len(parts) else rows
        count = record_headers.fill(part.payload, places, part.row, end, columns, count)
    del columns
    for each, buffer in zip(views[1:], data, strict=True):
        buffer.resize(each[count], shrink_to_fit=True)
    names = pa.Array.from_buffers(pa.string(), count, [None, bounds[0], data[0]], null_count=0)
    contents = pa.Array.from_buffers(pa.binary(), count, [pa.py_buffer(value_bits), bounds[1], data[1]])
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = pa.Array.from_buffers(pa.binary(), count, [None, bounds[0], data[0]], null_count=0)
        names = pa.array([name.decode("utf-8", "replace") for name in raw.to_pylist()], pa.string())  # as in Java
    pairs = pa.StructArray.from_arrays([names, contents], fields=list(headers_type().value_type))
    return pa.Array.from_buffers(headers_type(), rows, [pa.py_buffer(list_bits), lists], children=[pairs])


def encode_headers(headers: Any) -> tuple[Any, ...]:
    """What stands behind the value of each record, as a column of bytes."""
    pa = arrow()
    if isinstance(headers, pa.ChunkedArray):
        headers = headers.combine_chunks()
    if headers.type != headers_type():
        headers = headers.cast(headers_type())
    rows, pairs = len(headers), headers.values
    if pairs.null_count or pairs.field("key").null_count:
        raise ValueError("every header needs a name")
    names, values = cells(pairs.field("key")), cells(pairs.field("value"))
    lists = view(headers.offsets.buffers()[1], "i")[headers.offsets.offset :][: rows + 1]
    bits = (view(headers.buffers()[0], "B"), headers.offset) if headers.null_count else None
    first, last = (lists[0], lists[rows]) if rows else (0, 0)
    size_bytes = COUNT_BYTES_MAX * (rows + 1 + 2 * (last - first))
    size_bytes += sum(column[0][last] - column[0][first] for column in (names, values)) + COUNT_BYTES_MAX
    out, ends = bytearray(size_bytes), view(bytearray(4 * (rows + 1)), "i")
    size_bytes = record_headers.encode(lists, bits, names, values, out, ends)
    return ends, memoryview(out)[:size_bytes], None, 0


def binary(column: Any) -> Any:
    pa = arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return column if column.type in (pa.binary(), pa.string()) else column.cast(pa.binary())


def cells(column: Any) -> tuple[Any, ...]:
    """A column of bytes as plain views: bounds, bytes, validity bits or None, the index of the first bit."""
    column = binary(column)
    bits, bounds, data = column.buffers()
    start = column.offset
    return (
        view(bounds, "i")[start : start + len(column) + 1],
        b"" if data is None else view(data, "B"),
        view(bits, "B") if column.null_count else None,
        start,
    )
