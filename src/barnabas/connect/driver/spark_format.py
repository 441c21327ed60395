"""The format ``barnabas_connect`` of Spark: sources that the driver feeds, and sinks of plugins. Spark's side only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from barnabas.connect.driver.host import call
from barnabas.connect.driver.prepared import Prepared, Spec
from barnabas.connect.records import Batch, Part

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = "barnabas_connect"
SOCKET: Final = "socket"  # option: address of the driver
QUERY: Final = "query"  # option: name of the lane, or of the sink's connector
BATCH_ID: Final = "streaming.sql.batchId"
_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMNS: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", _HEADERS),
    ]
)


class ConnectFormat(DataSource):
    """Known to Spark by its name."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of sources."""
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a lane."""
        return LaneReader(self.options[SOCKET], self.options[QUERY])

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Return the writer of a sink; made anew for each batch, after Spark has noted the batch's offsets."""
        spec, sink_id = call(self.options[SOCKET], "sink", self.options[QUERY])
        return SinkWriter(spec, sink_id)


class RowsPartition(InputPartition):
    """Rows that ride inside a partition."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class SourcePart(InputPartition):
    """A part that an executor reads."""

    def __init__(self, spec: Spec, part: Part, task: int) -> None:
        self.spec = spec
        self.part = part
        self.task = task


class LaneReader(DataSourceStreamReader):
    """Asks the driver for everything."""

    def __init__(self, socket: str, lane: str) -> None:
        self._socket = socket
        self._lane = lane

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset without any connector."""
        return {}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch."""
        end: dict[str, Any] = call(self._socket, "latest", self._lane, start)
        return start if end == start else end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch."""
        planned: Sequence[InputPartition] = call(self._socket, "plan", self._lane, start, end)
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        from barnabas.connect.driver.rows import batches, unpacked

        if isinstance(partition, RowsPartition):
            yield from unpacked(partition.data)
            return
        assert isinstance(partition, SourcePart)
        prepared = Prepared(partition.spec)
        source = prepared.instance()
        try:
            yield from batches(prepared.outgoing(source.read(partition.part), prepared.errors(partition.task)))
        finally:
            source.close()

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the driver learns of commits when it is asked for the next batch."""


class Flushed(WriterCommitMessage):
    """What a task has written."""

    def __init__(self, result: Any) -> None:
        self.result = result


class SinkWriter(DataSourceStreamArrowWriter):
    """Runs a sink's tasks in executors, and its commit in the driver's machine."""

    def __init__(self, spec: Spec, sink_id: str) -> None:
        self._spec = spec
        self._sink_id = sink_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        from barnabas.connect.driver.sink_task import write

        task = TaskContext.get()
        assert task is not None, "rows are written by tasks only"
        batch = Batch(self._sink_id, int(task.getLocalProperty(BATCH_ID) or 0), task.partitionId())
        return Flushed(write(self._spec, batch, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish what the tasks have written."""
        flushed = [message.result for message in messages if isinstance(message, Flushed)]
        sink = Prepared(self._spec).instance()
        try:
            sink.commit([each for each in flushed if each is not None], Batch(self._sink_id, batchId, -1))
        finally:
            sink.close()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave what was written: the batch comes again under the same number."""
