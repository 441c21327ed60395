"""The test driver on Spark: the plan of production, fed from files and without a broker.

Records are processed when results are read, those that were sent in between as one batch. State is kept in a checkpoint
and each batch is a query of its own, so each tests a restart too.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.serdes.serde import Place
from barnabas.spark.connector.source import columns
from barnabas.spark.errors import PipelineFailed
from barnabas.spark.pipelines.runner import reason_of
from barnabas.streams.app import App
from barnabas.streams.driver import Driver
from barnabas.streams.durations import Duration
from barnabas.streams.errors import StreamsError
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.plan import make_plan
from barnabas.streams.host.query import state_partitions, written
from barnabas.streams.host.state import STATE_BYTES_MAX
from barnabas.streams.runtime.task import InputRecord, Row
from barnabas.streams.serdes import codec_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkDriver"]

BATCH_SECONDS_MAX: Final = 300
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class SparkDriver(Driver):
    """Runs an application for a test on Spark; made by ``drive(app, on="spark")``."""

    def __init__(
        self,
        app: App,
        *,
        partitions: Mapping[str, int] | int = 1,
        start: int | datetime = 0,
    ) -> None:
        super().__init__(app, partitions=partitions, start=start)
        self._spark = _session()
        self._code = AppCode.of(app)
        self._plan = make_plan(app.topology(), self._partitions, partitions_max=2)
        self._looped = {self._topology.decorate(topic) for topic in self._plan.looped}
        self._directory = Path(tempfile.mkdtemp(prefix="barnabas-drive-"))
        self._waiting: list[InputRecord] = []
        self._has_tick = False
        self._stored: dict[str, dict[Any, Any]] = {}

    def advance(self, duration: Duration) -> None:
        self._has_tick = True
        super().advance(duration)
        self._flush()

    def read_rows(self, topic: str) -> list[Row]:
        self._flush()
        return super().read_rows(topic)

    def table(self, topic: str) -> dict[Any, Any]:
        self._flush()
        return super().table(topic)

    def store(self, name: str) -> dict[Any, Any]:
        """Return the contents of a named store, from what it has written to its changelog."""
        self._flush()
        spec = self._topology.stores.get(name)
        if spec is None or not spec.is_named:
            known = ", ".join(each for each, spec in self._topology.stores.items() if spec.is_named) or "none"
            raise StreamsError(f"the application has no named store {name}; its named stores are: {known}")
        return dict(self._stored.get(name, {}))

    def changelog(self) -> list[Row]:
        self._flush()
        return super().changelog()

    def restart(self) -> None:
        """Do nothing: each batch restores the tasks from the checkpoint."""

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, records: list[InputRecord]) -> None:
        self._waiting += records

    def _flush(self) -> None:
        """Process the records that wait, and those that the application sends itself, until none is left."""
        stores = {self._topology.changelog(name): name for name, spec in self._topology.stores.items() if spec.is_named}
        while self._waiting or self._has_tick:
            waiting, self._waiting = self._waiting, []
            returned: dict[tuple[str, int], deque[InputRecord]] = {}
            for row in self._batch_of(waiting):
                if row.topic in stores:
                    self._changelog.append(row)
                    self._change(stores[row.topic], row)
                else:
                    self._deliver([row._replace(is_internal=row.topic in self._looped)], returned)
            self._waiting += [record for queue in returned.values() for record in queue]

    def _change(self, name: str, row: Row) -> None:
        """Change the contents of a store as its changelog says."""
        spec, contents = self._topology.stores[name], self._stored.setdefault(name, {})
        assert row.key is not None
        key = codec_of(spec.key, Place(row.topic, is_key=True)).decode(row.key)
        if row.value is None:
            contents.pop(key, None)
        else:
            contents[key] = codec_of(spec.value, Place(row.topic)).decode(row.value)

    def _batch_of(self, records: list[InputRecord]) -> list[Row]:
        """Run one batch of Spark."""
        self._batch += 1
        spark, now = self._spark, _EPOCH + timedelta(milliseconds=self._time_ms)
        self._write("records", [(*_cells(record), now) for record in records])
        is_ticked, self._has_tick = self._has_tick and self._plan.tick_ms is not None, False
        if self._plan.tick_ms is not None:
            self._write("ticks", [(self._batch, now)] if is_ticked else [])
        ticks = None if self._plan.tick_ms is None else self._stream("ticks")
        frame = written(self._stream("records"), ticks, self._code, self._plan, state_bytes_max=STATE_BYTES_MAX)
        rows: list[Row] = []

        def collect(batch: DataFrame, _: int) -> None:
            rows.extend(_row(each) for each in batch.collect() if each.offsets is None)

        writer: Any = frame.writeStream.foreachBatch(collect).trigger(availableNow=True)
        with state_partitions(spark, self._plan):
            query = writer.option("checkpointLocation", str(self._directory / "checkpoint")).start()
        try:
            if not query.awaitTermination(BATCH_SECONDS_MAX):
                raise StreamsError(f"the batch did not end within {BATCH_SECONDS_MAX} s")
        except Exception as error:
            raise PipelineFailed(reason_of(str(error))) from error
        finally:
            query.stop()
        return rows

    def _write(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        path = self._directory / name
        path.mkdir(exist_ok=True)
        if rows:
            frame = self._spark.createDataFrame(rows, self._schema(name)).coalesce(1)
            frame.write.mode("append").parquet(str(path))

    def _stream(self, name: str) -> DataFrame:
        return self._spark.readStream.schema(self._schema(name)).parquet(str(self._directory / name))

    def _schema(self, name: str) -> Any:
        from pyspark.sql.types import LongType, StructField, StructType, TimestampType

        if name == "ticks":
            return StructType([StructField("tick", LongType()), StructField("now", TimestampType())])
        return StructType([*columns(with_headers=True).fields, StructField("now", TimestampType())])


def _session() -> SparkSession:
    """The active session, so that tests share one, otherwise a new one."""
    from pyspark.sql import SparkSession

    from barnabas.spark.sessions import session

    return SparkSession.getActiveSession() or session("drive")


def _cells(record: InputRecord) -> tuple[Any, ...]:
    topic, partition, offset, timestamp, key, value, headers = record
    cells = [(name, None if content is None else bytearray(content)) for name, content in headers] or None
    at = _EPOCH + timedelta(milliseconds=timestamp)
    key_cell = None if key is None else bytearray(key)
    return key_cell, None if value is None else bytearray(value), topic, partition, offset, at, 0, cells


def _row(row: Any) -> Row:
    headers = tuple((each.key, None if each.value is None else bytes(each.value)) for each in row.headers or ())
    timestamp = (row.timestamp.replace(tzinfo=row.timestamp.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)
    key, value = (None if cell is None else bytes(cell) for cell in (row.key, row.value))
    return Row(row.topic, row.partition, key, value, headers, timestamp)
