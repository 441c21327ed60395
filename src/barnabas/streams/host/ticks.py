"""A source of Spark with a row for each interval of time, so that there is a batch when a punctuator is due.

An offset is a number of intervals since the epoch. It is in the query's offset log, so a batch that is repeated has the
same ticks. If several intervals have passed, a batch has one row: punctuators do not catch up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructField, StructType

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FORMAT", "TickSource"]

FORMAT: Final = "barnabas-ticks"
INTERVAL: Final = "intervalMs"
_TICK: Final = "tick"


class TickSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return StructType([StructField(_TICK, LongType())])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return TickReader(int(self.options[INTERVAL]))


class TickReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._target: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {_TICK: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._now()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        now = self._now() if self._target is None else self._target
        return {_TICK: max(now, int(start[_TICK]))}  # a clock may be set back

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(int(end[_TICK]))]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({_TICK: pa.array([partition.value], pa.int64())})

    def _now(self) -> int:
        return time.time_ns() // 1_000_000 // self._interval_ms
