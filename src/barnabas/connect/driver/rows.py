"""Rows between Spark and the connectors: a source's records as Arrow batches, and Arrow batches as a sink's records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from barnabas.connect.chain import Outgoing
from barnabas.connect.tolerance import Raw

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX: Final = 5000  # in one Arrow batch


def arrow_schema() -> pa.Schema:
    """Return the columns that a source gives Spark."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.schema(
        [
            pa.field("topic", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(header)),
        ]
    )


def to_batch(rows: Sequence[Outgoing]) -> pa.RecordBatch:
    """Return rows as an Arrow batch."""
    import pyarrow as pa

    headers = [[{"key": key, "value": value} for key, value in row.headers] if row.headers else None for row in rows]
    columns = [
        [row.topic for row in rows],
        [row.partition for row in rows],
        [row.key for row in rows],
        [row.value for row in rows],
        headers,
    ]
    schema = arrow_schema()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batches(rows: Iterable[Outgoing]) -> Iterator[pa.RecordBatch]:
    """Yield rows as Arrow batches of bounded length."""
    left = iter(rows)
    while piece := list(islice(left, ROWS_MAX)):
        yield to_batch(piece)


def packed(rows: Sequence[Outgoing]) -> bytes:
    """Return rows as bytes of Arrow's stream format."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow_schema()) as writer:
        for batch in batches(rows):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the Arrow batches of such bytes."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        yield from reader


def outgoings(batch: pa.RecordBatch) -> Iterator[Outgoing]:
    """Yield the rows of such an Arrow batch."""
    for row in batch.to_pylist():
        headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
        yield Outgoing(row["topic"], row["partition"], row["key"], row["value"], headers, None)


def raws(batch: pa.RecordBatch) -> Iterator[Raw]:
    """Yield the rows of the format ``barnabas`` as records of topics."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    stamps = columns["timestamp"].cast("int64").to_pylist()
    headers = columns["headers"].to_pylist() if "headers" in columns else [None] * batch.num_rows
    fields = zip(
        columns["topic"].to_pylist(),
        columns["partition"].to_pylist(),
        columns["offset"].to_pylist(),
        stamps,
        columns["key"].to_pylist(),
        columns["value"].to_pylist(),
        headers,
        strict=True,
    )
    for topic, partition, offset, micros, key, value, found in fields:
        pairs = tuple((each["key"], each["value"]) for each in found or ())
        yield Raw(topic, partition, offset, micros // 1000, key, value, pairs)
