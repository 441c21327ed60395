"""Rows of an Arrow table on their way to partitions: whom each row belongs to, and a batch's share as one value.

No Python object is made for a row, unless a partitioner of one's own wants to see rows or keys. pyarrow is
imported on first use; the producer's ``send_arrow`` calls this, bytes are made in ``wire/columns.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.produce.batch import RECORD_OVERHEAD_BYTES, BatchContent
from barnabas.wire import key_hash, scalars
from barnabas.wire.columns import encode_columns
from barnabas.wire.columns_headers import cells, view

if TYPE_CHECKING:
    import pyarrow

COLUMNS: Final = frozenset({"key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"})


class ArrowRows(BatchContent):
    """A slice of a table, as what a batch holds."""

    def __init__(self, table: pyarrow.Table, now_ms: int) -> None:
        self._table = table
        self._now_ms = now_ms
        self._size_bytes = size_of_rows(table)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def __len__(self) -> int:
        return len(self._table)

    def part(self, start: int, end: int) -> ArrowRows:
        return ArrowRows(self._table.slice(start, end - start), self._now_ms)

    def timestamps_ms(self, first: int, count: int) -> list[int]:
        return [self._now_ms] * count

    def encode(self, **facts: Any) -> bytearray:
        names = set(self._table.column_names)
        column = {name: _whole(self._table.column(name)) for name in names & COLUMNS}
        return encode_columns(
            column["value"],
            key=column.get("key"),
            timestamp=column.get("timestamp", self._now_ms),
            headers=column.get("headers"),
            **facts,
        )


def _whole(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def checked(table: Any) -> pyarrow.Table:
    """A table with columns that we know; a record batch will do."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    unknown = sorted(set(table.column_names) - COLUMNS)
    if unknown:
        raise ValueError(f"column {unknown[0]!r} is none of {', '.join(sorted(COLUMNS))}")
    if "value" not in table.column_names:
        raise ValueError("the column value is missing")
    for name in ("key", "value"):
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, _as_bytes(table.column(name), name))
    return table


def _as_bytes(column: pyarrow.ChunkedArray, name: str) -> pyarrow.ChunkedArray:
    """Text is sent as UTF-8; ValueError for what has no bytes of its own."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    raise ValueError(f"the column {name} is of type {kind}: make bytes or text of it first")


def by_value(table: pyarrow.Table, name: str) -> Iterator[tuple[Any, pyarrow.Table]]:
    """The rows of each distinct value of a column, in their order."""
    import pyarrow.compute as pc

    column = table.column(name)
    distinct = pc.unique(column)
    if len(distinct) == 1:
        yield distinct[0].as_py(), table
        return
    for value in distinct:
        yield value.as_py(), table.filter(pc.equal(column, value) if value.is_valid else pc.is_null(column))


def partitions_by_murmur2(table: pyarrow.Table, partition_count: int) -> pyarrow.Array | None:
    """The partition of every row that has a key, null for the others; None if no row has one."""
    import pyarrow as pa

    if "key" not in table.column_names or table.column("key").null_count == len(table):
        return None
    keys = table.column("key").combine_chunks()
    bounds, data, bits, first_bit = cells(keys)
    chosen = bytearray(4 * len(keys))
    key_hash.partitions(bounds, data or b"\x00", bits, first_bit, partition_count, view(chosen, "i"))
    array = pa.Array.from_buffers(pa.int32(), len(keys), [None, pa.py_buffer(chosen)], null_count=0)
    if bits is None:
        return array
    return _masked(array, keys)


def _masked(array: pyarrow.Array, keys: pyarrow.Array) -> pyarrow.Array:
    """Null where the key is."""
    import pyarrow.compute as pc

    return pc.if_else(keys.is_valid(), array, scalars.null(array.type))


def partitions_of(table: pyarrow.Table, partition_of: Callable[[bytes], int]) -> pyarrow.Array | None:
    """The same by any function, which is asked once for every distinct key."""
    import pyarrow as pa

    if "key" not in table.column_names or table.column("key").null_count == len(table):
        return None
    encoded = table.column("key").combine_chunks().cast(pa.binary()).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    hashed = pa.array([partition_of(key) for key in encoded.dictionary.to_pylist()], pa.int32())
    return hashed.take(encoded.indices)


def partitions_of_rows(
    table: pyarrow.Table, partition_of: Callable[[bytes | None, bytes | None], int | None]
) -> pyarrow.Array:
    """The same by a function that is asked for every row, with its key and its value."""
    import pyarrow as pa

    values = table.column("value").to_pylist()
    keys = table.column("key").to_pylist() if "key" in table.column_names else [None] * len(values)
    return pa.array(map(partition_of, keys, values), pa.int32())


def with_partitions(table: pyarrow.Table, chosen: pyarrow.Array | None) -> pyarrow.Table:
    """The table with the chosen partitions where its column partition is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if chosen is None:
        return table
    given = table.column("partition").combine_chunks().cast(pa.int32())
    index = table.column_names.index("partition")
    return table.set_column(index, "partition", pc.coalesce(given, chosen))


def slices(table: pyarrow.Table, size_bytes_max: int) -> Iterator[pyarrow.Table]:
    """Pieces of at most so many bytes, but for a row that is larger alone; rows alike make pieces alike."""
    table = table.combine_chunks()
    count = max(1, size_bytes_max * len(table) // max(1, size_of_rows(table)))
    start = 0
    while start < len(table):
        piece = table.slice(start, count)
        while len(piece) > 1 and size_of_rows(piece) > size_bytes_max:
            piece = piece.slice(0, len(piece) // 2)
        yield piece
        start += len(piece)


def size_of_rows(table: pyarrow.Table) -> int:
    """An upper bound of what they take as records."""
    size_bytes: int = table.nbytes + RECORD_OVERHEAD_BYTES * len(table)
    return size_bytes
