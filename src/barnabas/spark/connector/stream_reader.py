"""``spark.readStream.format("barnabas")``: where the next batch ends, and which ranges that makes.

Lives in one process on the driver as long as the query does; :meth:`StreamReader.read` alone runs in executors, on a
copy. Spark asks for the next end only when the batch before is done: that is when the group hears of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.spark.connector.offsets import Offsets, from_json, limited, pending, split, to_json
from barnabas.spark.connector.plan import behind, loss_sentence, needs_earliest, plan
from barnabas.spark.connector.positions import Positions
from barnabas.spark.connector.progress import FirstBatch, Progress, TopicIds
from barnabas.spark.connector.reading import RangePartition, log, read
from barnabas.spark.connector.source_options import SourceOptions
from barnabas.spark.errors import DataLost, InvalidOption

if TYPE_CHECKING:
    import pyarrow

    from barnabas.spark.connector.formats import SourceFormats

# After a broker has failed, its successor may for a moment not know the newest end.
BEHIND_SECONDS_MAX: Final = 60.0


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, formats: SourceFormats | None = None) -> None:
        self._options = options
        self._formats = formats
        self._positions = Positions(options)
        self._progress: Progress | None = None
        self._ids: TopicIds | None = None
        self._first: FirstBatch | None = None
        self._initial: Offsets | None = None  # until the first batch is done
        self._planned: Offsets | None = None  # the first batch's end, if this process has decided it
        self._read_ids: dict[str, str] = {}  # ids of topics as of the last batch that was done
        self._has_learned = False
        self._batch_end: Offsets = {}  # of the batch under way, with the ids that its topics have
        self._batch_ids: dict[str, str] = {}
        self._latest: Offsets = {}
        self._target: Offsets | None = None  # the end of everything, for a query that takes what is there and stops
        self._last_batch_at = time.monotonic()
        self._behind_since: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_formats": self._formats}

    # --- where to start and end -----------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        options, positions = self._options, self._positions
        places = positions.partitions()
        start = positions.resolve(options.start, places, is_start=True)
        if not options.start.is_fixed:
            self._first = FirstBatch(positions.link, options.group, options.what)
            kept = self._first.start(places)
            if kept:
                start |= {place: min(offset, start[place]) for place, offset in kept.items()}
            else:
                self._first.keep_start(start)
        self._initial = start
        # A query that starts anew has read nothing yet, whatever others have left under the group's name.
        self._read_ids, self._has_learned = dict(positions.topic_ids), True
        return to_json(start)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.count_max is not None:
            return ReadMaxRows(self._options.count_max)
        if self._options.count_min is not None:
            return ReadMinRows(self._options.count_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._positions.latest(self._positions.partitions())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = from_json(start)
        self._check(begin)
        self._is_done(begin)
        try:
            return self._next_end(start, begin, limit)
        finally:
            if self._progress is not None:
                self._progress.settle()

    def _next_end(self, start: dict[str, Any], begin: Offsets, limit: ReadLimit) -> dict[str, Any]:
        end = self._end(begin)
        self._latest = end
        if self._options.fail_on_data_loss and self._renewed():
            self._lost(plan(begin, end, earliest=end, renewed=self._renewed()).losses)
        if not isinstance(limit, ReadAllAvailable):
            end = self._limited(self._effective(begin, end), begin, end)
        if end == begin:
            return start
        self._last_batch_at = time.monotonic()
        if self._first is not None and begin == self._initial:
            self._first.keep_batch(begin, end)
            self._planned = end
        return to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json(self._latest) if self._latest else None

    def _check(self, begin: Offsets) -> None:
        """A checkpoint of another query would make this one skip and repeat."""
        options = self._options
        topics = set(options.topics or (place.topic for place in options.assigned))
        others = sorted({place.topic for place in begin} - topics)
        if options.pattern is None and others:
            raise InvalidOption(
                f"the checkpoint is of a query that reads {', '.join(others)}, and this one reads {options.what}: "
                f"say another checkpointLocation"
            )

    def _end(self, begin: Offsets) -> Offsets:
        """Where the partitions end; one that seems to end before where it was read to is given time."""
        positions = self._positions
        if self._target is not None:
            anew = self._renewed()
            least = {place: 0 if place.topic in anew else offset for place, offset in begin.items()}
            return {place: max(offset, least.get(place, 0)) for place, offset in (begin | self._target).items()}
        end = positions.latest(positions.partitions())
        renewed = self._renewed()
        late = {place: offset for place, offset in behind(begin, end).items() if place.topic not in renewed}
        if not late:
            self._behind_since = None
            return end
        now = time.monotonic()
        self._behind_since = self._behind_since or now
        if now - self._behind_since > BEHIND_SECONDS_MAX:
            return end
        return end | {place: begin[place] for place in late}

    def _effective(self, begin: Offsets, end: Offsets) -> Offsets:
        """Where each partition is really read from: new ones and those made anew from their beginning."""
        renewed = self._renewed()
        return begin | self._positions.earliest(needs_earliest(begin, end, renewed=renewed))

    def _limited(self, effective: Offsets, begin: Offsets, end: Offsets) -> Offsets:
        options = self._options
        if options.count_min is not None and self._target is None:
            waited_ms = (time.monotonic() - self._last_batch_at) * 1000
            if pending(effective, end) < options.count_min and waited_ms < options.delay_ms_max:
                return begin
        return end if options.count_max is None else limited(effective, end, options.count_max)

    # --- what a batch reads ---------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        options, positions = self._options, self._positions
        first, last = from_json(start), from_json(end)
        self._check(first)
        if not positions.topic_ids:
            positions.partitions()
        if self._first is not None and first == self._initial:
            if last != self._planned:  # planned by a run before this one, which did not finish it
                first |= self._first.start_of(last)
            self._first.is_written_down()
        self._learn_ids()
        self._batch_end, self._batch_ids = last, dict(positions.topic_ids)
        renewed = self._renewed()
        earliest = positions.earliest(
            place for place in needs_earliest(first, last, renewed=renewed) if place.topic in positions.topic_ids
        )
        last = {place: offset for place, offset in last.items() if place in earliest or place in first}
        # Partitions that came after the end was decided are the next batch's.
        if not first.keys() <= last.keys():
            gone = first.keys() - set(positions.partitions())
            first = {place: offset for place, offset in first.items() if place in last or place in gone}
        planned = plan(first, last, earliest=earliest, renewed=renewed)
        if planned.losses:
            self._lost(planned.losses)
        tasks = split(planned.ranges, count_min=options.partitions_min, size_max=options.partition_records_max)
        return [RangePartition.of(each, positions.topic_ids) for each in tasks]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return read(partition, self._options, self._formats)

    # --- what is done ---------------------------------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """Spark calls this only when the next batch is built; :meth:`latestOffset` has told the group by then."""

    def _is_done(self, begin: Offsets) -> None:
        """Everything up to here is done with. At the first look after a restart that is what the checkpoint says."""
        if begin == self._initial:
            return
        if self._first is not None:
            self._first.is_done()
            self._first = self._initial = None
        self._learn_ids()
        if begin == self._batch_end:
            self._read_ids |= self._batch_ids
            self._topic_ids().store(self._read_ids)
        if self._progress is None:
            self._progress = Progress(self._positions.link, self._options.group)
        self._progress.tell(begin)

    def _renewed(self) -> set[str]:
        """Topics that were made anew since the last batch that was done."""
        ids = self._positions.topic_ids
        return {topic for topic, old in self._read_ids.items() if topic in ids and ids[topic] != old}

    def _learn_ids(self) -> None:
        """What a run before this one has left, once."""
        if not self._has_learned:
            self._has_learned = True
            self._read_ids = self._topic_ids().load()

    def _topic_ids(self) -> TopicIds:
        if self._ids is None:
            self._ids = TopicIds(self._positions.link, self._options.group, self._options.what)
        return self._ids

    def _lost(self, losses: list[str]) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(loss_sentence(losses))
        log.warning("%s; failOnDataLoss=false: going on with what is there", "; ".join(losses))
