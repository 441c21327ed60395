"""``spark.read.format("barnabas")``: a part of topics as a table, from a start to an end that are looked up once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from barnabas.spark.connector.filters import Bounds
from barnabas.spark.connector.offsets import Offsets, Range, split
from barnabas.spark.connector.positions import Positions
from barnabas.spark.connector.reading import RangePartition, read
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.errors import InvalidOption

if TYPE_CHECKING:
    import pyarrow

    from barnabas.spark.connector.formats import SourceFormats


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, formats: SourceFormats | None = None) -> None:
        self._options = options
        self._formats = formats
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        options, positions = self._options, Positions(self._options)
        places = positions.partitions()
        start = positions.resolve(options.start, places, is_start=True)
        end = self._end(positions)
        ranges = [Range(place, start[place], end[place]) for place in places if self._bounds.has(place)]
        ranges = [self._bounds.within(self._after(each, positions)) for each in ranges]
        tasks = split(ranges, count_min=options.partitions_min, size_max=options.partition_records_max)
        return [RangePartition.of(each, positions.topic_ids) for each in tasks]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read(partition, self._options, self._formats)

    def _end(self, positions: Positions) -> Offsets:
        places = positions.partitions()
        end = positions.resolve(self._options.end, places, is_start=False)
        if self._options.end.kind == "offsets":
            latest = positions.latest(places)
            beyond = [f"{place} ends at {latest[place]}" for place in places if end[place] > latest[place]]
            if beyond:
                raise InvalidOption(f"endingOffsets is beyond what there is: {', '.join(beyond)}")
        return end

    def _after(self, whole: Range, positions: Positions) -> Range:
        """Without what is older than a condition wants."""
        if self._bounds.time_ms_min is None or not whole.size:
            return whole
        first = positions.first_not_older(whole.place, self._bounds.time_ms_min)
        return whole._replace(start=max(whole.start, whole.end if first is None else first))


class FilteringBatchReader(BatchReader):
    """With conditions taken over from Spark; its presence alone is an error while that is switched off in Spark."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        for condition in filters:
            self._bounds = self._bounds.taking(condition)
        return self._bounds.untouched
