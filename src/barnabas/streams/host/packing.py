"""The functions on both ends of the operators: records of the source into rows for tasks, rows of tasks into records.

They run in Spark's workers, as ``mapInArrow``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from barnabas.streams.host.blobs import INPUT, TICK, input_blob, input_records, internal_blobs, output_batches
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.routing import Packed, Sender, routed
from barnabas.streams.runtime.task import Row, Task
from barnabas.wire.key_hash import murmur2

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Framing", "Packing", "Ticking", "unpack"]

# A record that is read becomes at most so many blobs for one task, so blobs can be numbered by offsets.
_BLOBS_PER_RECORD: Final = 1 << 20


@dataclass(frozen=True)
class Packing:
    """Packs records of the source: a row for each task, topic and partition; for a global table, for each copy.

    Records of stateless sub-topologies are processed here, and what is packed is their output.
    """

    plan: Plan
    code: AppCode

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        tasks: dict[int, Task] = {}
        for batch in batches:
            rows = [row for part in _by_partition(batch) for row in self._rows(part, tasks)]
            if rows:
                yield _packed(rows)

    def _rows(self, part: pyarrow.RecordBatch, tasks: dict[int, Task]) -> Iterator[Packed]:
        plan = self.plan
        topic, partition = part.column("topic")[0].as_py(), part.column("partition")[0].as_py()
        first, end = part.column("offset")[0].as_py(), part.column("offset")[-1].as_py() + 1
        now = _milliseconds(part.column("now")[0])
        reader = plan.reader(topic)
        if plan.is_stateless(reader.number):
            index = plan.task(reader.number, partition)
            task = tasks.get(index)
            if task is None:
                task = tasks[index] = self._task(reader.number, partition)
            task.begin(time_ms=now, seed=0)
            rows = task.process(input_records(part, reader.topic, partition))
            sender = Sender(index, plan.sender(index, reader.topic), first * _BLOBS_PER_RECORD)
            offsets = {topic: {str(partition): end}}
            yield from routed(plan, sender, rows, {topic: {partition: end}}, offsets, now)
            return
        copies = plan.copies.get(topic)
        readers = copies if copies is not None else (plan.task(reader.number, partition),)
        blob = input_blob(part)
        for index in readers:
            yield Packed(plan.labels[index], INPUT, topic, reader.topic, partition, first, end, now, blob)

    def _task(self, number: int, partition: int) -> Task:
        app, plan = self.code.app(), self.plan
        return Task(
            app.topology(),
            number,
            partition,
            partitions=plan.partitions,
            on_error=app.on_error,
            record_bytes_max=plan.record_bytes_max,
        )


@dataclass(frozen=True)
class Framing:
    """Packs rows of a DataFrame as if a task had sent them: for the partition of their key, to be merged by time."""

    plan: Plan
    name: str

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        plan, name = self.plan, self.name
        context = TaskContext.get()
        sender = 0 if context is None else context.partitionId()
        reader, count = plan.reader(name).number, plan.partitions[name]
        numbers = [0] * count
        for batch in batches:
            if not batch.num_rows:
                continue
            now = _milliseconds(batch.column("now")[0])
            by_partition: list[list[Row]] = [[] for _ in range(count)]
            for _, _, _, timestamp, key, value, headers in input_records(batch, name, 0):
                partition = 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % count
                by_partition[partition].append(Row(name, partition, key, value, headers, timestamp, is_internal=True))
            rows = []
            for partition, part in enumerate(by_partition):
                for blob in internal_blobs(part, {}):
                    label = plan.labels[plan.task(reader, partition)]
                    rows.append(Packed(label, INPUT, name, name, sender, numbers[partition], -1, now, blob))
                    numbers[partition] += 1
            yield _packed(rows)


@dataclass(frozen=True)
class Ticking:
    """Makes a row for each task with wall-clock punctuators, for each batch in which there is a tick."""

    plan: Plan

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                now = max(_milliseconds(cell) for cell in batch.column("now"))
                labels = [self.plan.labels[task] for task in self.plan.ticked]
                yield _packed([Packed(label, TICK, "", "", 0, 0, -1, now, b"") for label in labels])


def unpack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The records that rows of tasks hold."""
    for batch in batches:
        yield from output_batches(blob.as_py() for blob in batch.column("blob"))


def _milliseconds(cell: Any) -> int:
    return cell.value // 1000  # type: ignore[no-any-return]  # Spark's timestamps are microseconds


def _by_partition(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """The rows of each topic and partition, in order. Spark nearly always gives rows of one partition only."""
    if not batch.num_rows:
        return
    for of_topic in _by_value(batch, "topic"):
        yield from _by_value(of_topic, "partition")


def _by_value(batch: pyarrow.RecordBatch, name: str) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow.compute as pc

    values = pc.unique(batch.column(name))
    if len(values) == 1:
        yield batch
    else:
        yield from (batch.filter(pc.equal(batch.column(name), value)) for value in values)


def _packed(rows: list[Packed]) -> pyarrow.RecordBatch:
    import pyarrow as pa

    types = (
        pa.int32(),
        pa.int32(),
        pa.string(),
        pa.string(),
        pa.int32(),
        pa.int64(),
        pa.int64(),
        pa.int64(),
        pa.binary(),
    )
    columns = [pa.array(cells, kind) for cells, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(Packed._fields))
