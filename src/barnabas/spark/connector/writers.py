"""``writeStream`` and ``write`` with ``format("barnabas")``: Spark's side of a sink.

Writers are made anew for every batch and pickled to executors, so they hold options and nothing else. They are made in
one process, write in others and commit in a third: each imports what it needs when it needs it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.spark.connector.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow

    from barnabas.spark.connector.formats import SinkFormats

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, formats: SinkFormats | None = None) -> None:
        self._options = options
        self._formats = formats

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        from barnabas.spark.connector.writing import Batch, write

        task = _task()
        query_id, batch_id = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
        assert query_id is not None, "Spark tells every task of a stream whose it is"
        assert batch_id is not None
        options = self._options
        batch = Batch(f"{options.prefix}-{query_id}", task.partitionId(), int(batch_id), options.application_id)
        return write(_encoded(iterator, self._formats), self._options, batch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _end(messages, self._options, commit=True, batch_id=batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _end(messages, self._options, commit=False)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, formats: SinkFormats | None = None) -> None:
        self._options = options
        self._formats = formats
        self._sink_id = options.sink_id or f"{options.prefix}-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        from barnabas.spark.connector.writing import Batch, write

        batch = Batch(self._sink_id, _task().partitionId(), self._options.batch_id)
        return write(_encoded(iterator, self._formats), self._options, batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _end(messages, self._options, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _end(messages, self._options, commit=False)


def _encoded(rows: Iterator[pyarrow.RecordBatch], formats: SinkFormats | None) -> Iterator[pyarrow.RecordBatch]:
    return rows if formats is None else map(formats.apply, rows)


def _end(
    messages: list[WriterCommitMessage | None], options: SinkOptions, *, commit: bool, batch_id: int | None = None
) -> None:
    from barnabas.spark.connector.ending import end

    end(messages, options, commit=commit, batch_id=batch_id)


def _task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks only"
    return context
