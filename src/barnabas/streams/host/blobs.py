"""Records on their way between operators: Arrow IPC blobs, one row of Spark for many records.

A row has the label of its task, the kind of its content, and what orders the rows of a task: topic, partition and the
number of the first record. So a record crosses Spark's Java process as a part of a blob, not as a row of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final

from barnabas.streams.host.counters import Intake
from barnabas.streams.positions import Position, decode_position, encode_position, merge_into
from barnabas.streams.runtime.task import InputRecord, Row

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "INPUT",
    "OUTPUT",
    "PACKED",
    "TICK",
    "input_blob",
    "input_records",
    "internal_blobs",
    "offsets_blob",
    "output_batches",
    "output_blobs",
    "records_of",
]

# Columns of the rows between operators, and of the rows for the sink.
# task: label. topic, name: name of the topic in the cluster and in the topology. partition: that of the topic, or
# the index of the task that sends the records. first: orders the blobs. end: offset after the last record, or -1.
PACKED: Final = (
    "task int, kind int, topic string, name string, partition int, first long, end long, now long, blob binary"
)
WRITTEN: Final = (
    "key binary, value binary, topic string, partition int, headers array<struct<key: string, value: binary>>, "
    "timestamp timestamp, offsets string"
)
INPUT, TICK, OUTPUT = 0, 1, 2  # kinds of rows
BLOB_RECORDS_MAX: Final = 10_000
BLOB_BYTES_MAX: Final = 4 * 1024 * 1024


POSITION: Final = b"position"  # in the schema of internal blobs: offsets that the sending task has read


def to_ipc(batch: pyarrow.RecordBatch) -> bytes:
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    blob: bytes = stream.getvalue().to_pybytes()
    return blob


def from_ipc(blob: bytes) -> pyarrow.Table:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return reader.read_all()


def input_blob(batch: pyarrow.RecordBatch) -> bytes:
    """Records as the source has read them, of one topic and partition."""
    return to_ipc(_input(batch))


def input_records(batch: pyarrow.RecordBatch, topic: str, partition: int) -> Iterator[InputRecord]:
    """The same records for a task that runs where they are read."""
    return _records(_input(batch), topic, partition)


def _input(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    import pyarrow as pa

    names = ["offset", "timestamp", "key", "value"]
    if batch.column("headers").null_count < batch.num_rows:
        names.append("headers")
    columns = [batch.column(name) for name in names]
    columns[1] = columns[1].cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    return pa.RecordBatch.from_arrays(columns, names=names)


def records_of(blob: bytes, topic: str, partition: int, intake: Intake) -> Iterator[InputRecord]:
    """The records of a blob for a task. They are counted in ``intake``, which also gets the position of the sender."""
    table = from_ipc(blob)
    intake.count(topic, table)
    sent = (table.schema.metadata or {}).get(POSITION)
    if sent is not None:
        merge_into(intake.position, decode_position(sent))
    return _records(table, topic, partition)


def _records(table: pyarrow.Table | pyarrow.RecordBatch, topic: str, partition: int) -> Iterator[InputRecord]:
    columns = [table.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value")]
    headers: Iterable[Any] = repeat(())
    if "headers" in table.schema.names:
        headers = map(_headers, table.column("headers").to_pylist())
    return zip(repeat(topic), repeat(partition), *columns, headers, strict=False)


def _headers(cell: list[Mapping[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((entry["key"], entry["value"]) for entry in cell) if cell else ()


def internal_blobs(rows: Iterable[Row], position: Position) -> Iterator[bytes]:
    """Repartitioned records for one task, in order; position: offsets that the sending task has read."""
    import pyarrow as pa

    metadata = {POSITION: encode_position(position)}

    for part in _pieces(rows):
        first = range(len(part))
        headers = _header_array(part)
        columns = [
            pa.array(first, pa.int64()),
            pa.array([row.timestamp for row in part], pa.int64()),
            pa.array([row.key for row in part], pa.binary()),
            pa.array([row.value for row in part], pa.binary()),
        ]
        names = ["offset", "timestamp", "key", "value"]
        if headers is not None:
            columns.append(headers)
            names.append("headers")
        yield to_ipc(pa.RecordBatch.from_arrays(columns, names=names).replace_schema_metadata(metadata))


def output_blobs(rows: Iterable[Row]) -> Iterator[bytes]:
    """Records for topics, in order."""
    for part in _pieces(rows):
        yield to_ipc(_written(part))


def offsets_blob(offsets: Mapping[str, Mapping[str, int]]) -> bytes:
    """Offsets up to which a task has read its topics, for the sink."""
    return to_ipc(_written([], json.dumps(offsets)))


def output_batches(blobs: Iterable[bytes]) -> Iterator[pyarrow.RecordBatch]:
    """The rows for the sink that blobs hold."""
    for blob in blobs:
        yield from from_ipc(blob).to_batches()


def _written(rows: list[Row], offsets: str | None = None) -> pyarrow.RecordBatch:
    import pyarrow as pa

    more = [] if offsets is None else [None]
    headers = _header_array(rows, len(more))
    columns = {
        "key": pa.array([row.key for row in rows] + more, pa.binary()),
        "value": pa.array([row.value for row in rows] + more, pa.binary()),
        "topic": pa.array([row.topic for row in rows] + more, pa.string()),
        "partition": pa.array([row.partition for row in rows] + more, pa.int32()),
        "headers": headers if headers is not None else pa.nulls(len(rows) + len(more), _header_type()),
        "timestamp": pa.array([max(row.timestamp, 0) * 1000 for row in rows] + more, pa.timestamp("us", tz="UTC")),
        "offsets": pa.array([None] * len(rows) + [offsets] * len(more), pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _header_type() -> pyarrow.DataType:
    import pyarrow as pa

    return pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _header_array(rows: list[Row], more: int = 0) -> pyarrow.Array | None:
    import pyarrow as pa

    if not any(row.headers for row in rows):
        return None
    cells = [[{"key": key, "value": value} for key, value in row.headers] if row.headers else None for row in rows]
    return pa.array(cells + [None] * more, _header_type())


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Lists of at most BLOB_RECORDS_MAX rows and about BLOB_BYTES_MAX bytes."""
    rest = iter(rows)
    while part := list(islice(rest, BLOB_RECORDS_MAX)):
        size = sum(len(row.key or b"") + len(row.value or b"") for row in part)
        count = max(1, len(part) * BLOB_BYTES_MAX // size) if size > BLOB_BYTES_MAX else len(part)
        for start in range(0, len(part), count):
            yield part[start : start + count]
