"""A search through the records of a topic: which records, in which order, with progress on the way.

Records are read by the client's consumer, without a group. Newest first, a search goes through windows of offsets from
the end to the start, so that the newest hit is shown first and soon. Every search has limits: rows, bytes of a shown
key or value, and how many searches run at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.consumer import Consumer
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST, LATEST_TIMESTAMP, Start, list_offsets, resolve
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.console.rows import PREVIEW_CHARACTERS, row_of
from barnabas.model.ids import TopicPartition
from barnabas.ops.records.format import Line

if TYPE_CHECKING:
    from barnabas.client.record import ConsumerRecord
    from barnabas.client.scan.needles import Probe
    from barnabas.ops.records.decoding import Decoder

ROWS_MAX: Final = 2000
SEARCHES_MAX: Final = 32  # at once, of all users
WINDOW_OFFSETS: Final = 2000  # of a partition, for the first look from the end
WINDOW_OFFSETS_MAX: Final = 200_000
PROGRESS_SECONDS: Final = 0.25
TAIL_POLL_MS: Final = 1000
POLL_MS: Final = 250  # after which progress is shown, also while nothing matches
TAIL_ROWS_MAX: Final = 500  # in one event; a busy topic drops the rest and counts them

Holds = Callable[[Line], bool]
Event = tuple[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    topic: str
    partitions: tuple[int, ...]
    start: Start
    end: Start | None = None  # None: where the partitions end now
    limit: int = 100
    newest_first: bool = False
    is_tail: bool = False
    raw_holds: Holds | None = None  # on bytes as they are stored
    holds: Holds | None = None  # on what was decoded
    read_committed: bool = False
    probe: Probe | None = None  # skips batches without a match


class Search:
    """``events`` yields records, progress and the end; closing the iterator cancels the search."""

    def __init__(
        self, settings: Mapping[str, Any], query: Query, decoder: Decoder, *, characters_max: int = PREVIEW_CHARACTERS
    ) -> None:
        level = "read_committed" if query.read_committed else "read_uncommitted"
        self._settings = ConsumerSettings.of(
            {**settings, "isolation.level": level, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        )
        self._query = query
        self._decoder = decoder
        self._characters_max = characters_max
        self._places = [TopicPartition(query.topic, index) for index in query.partitions]
        self._last_progress = 0.0
        self.scanned = 0
        self.found = 0
        self.total = 0

    async def events(self) -> AsyncGenerator[Event]:
        async with Consumer(self._settings) as consumer:
            if self._query.is_tail:
                async for event in self._tail(consumer):
                    yield event
                return
            first, last = await self._bounds(consumer)
            self.total = sum(last[place] - first[place] for place in self._places)
            yield self._progress()
            walk = self._backward if self._query.newest_first else self._forward
            async for event in walk(consumer, first, last):
                yield event
            reason = "limit" if self.found >= self._query.limit else "end"
            yield "done", {"reason": reason, "scanned": self.scanned, "total": self.total, "found": self.found}

    async def _bounds(
        self, consumer: Consumer[Any, Any]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        level = self._settings.isolation_level
        cluster = consumer.cluster
        starts = await resolve(cluster, dict.fromkeys(self._places, self._query.start), isolation_level=level)
        ends = await resolve(cluster, dict.fromkeys(self._places, self._query.end or LATEST), isolation_level=level)
        first = await list_offsets(cluster, dict.fromkeys(self._places, EARLIEST_TIMESTAMP))
        last = await list_offsets(cluster, dict.fromkeys(self._places, LATEST_TIMESTAMP), isolation_level=level)
        bounds = {}
        for place in self._places:
            low = min(max(starts[place], first[place].offset), last[place].offset)
            bounds[place] = low, max(min(ends[place], last[place].offset), low)
        return {place: low for place, (low, _) in bounds.items()}, {place: high for place, (_, high) in bounds.items()}

    async def _forward(self, consumer: Any, first: dict[TopicPartition, int], last: dict[TopicPartition, int]) -> Any:
        open_places = {place: Start.at(first[place]) for place in self._places if first[place] < last[place]}
        if not open_places:
            return
        await consumer.assign(open_places, ends={place: last[place] for place in open_places}, probe=self._query.probe)
        async for records in self._polled(consumer):
            rows = await self._matching(records)
            rows = rows[: self._query.limit - self.found]
            self.found += len(rows)
            if rows:
                yield "records", [self._row(row) for row in rows]
            if self.found >= self._query.limit:
                return
            if self._is_time():
                yield self._progress()

    async def _backward(self, consumer: Any, first: dict[TopicPartition, int], last: dict[TopicPartition, int]) -> Any:
        """Window by window from the end; the rows of a window are sorted by time, newest first."""
        high = dict(last)
        size = max(WINDOW_OFFSETS // max(len(self._places), 1), self._query.limit)
        while True:
            low = {place: max(first[place], high[place] - size) for place in self._places}
            window = {place: Start.at(low[place]) for place in self._places if low[place] < high[place]}
            if not window:
                return
            await consumer.assign(window, ends={place: high[place] for place in window}, probe=self._query.probe)
            hits: list[Line] = []
            async for records in self._polled(consumer):
                hits += await self._matching(records)
                if len(hits) > 2 * ROWS_MAX:
                    hits = _newest(hits, ROWS_MAX)
                if self._is_time():
                    yield self._progress()
            rows = _newest(hits, self._query.limit - self.found)
            self.found += len(rows)
            if rows:
                yield "records", [self._row(row) for row in rows]
            yield self._progress()
            if self.found >= self._query.limit:
                return
            high = low
            size = min(size * 4, WINDOW_OFFSETS_MAX)

    async def _tail(self, consumer: Any) -> Any:
        await consumer.assign(dict.fromkeys(self._places, self._query.start), probe=self._query.probe)
        yield "progress", {"scanned": 0, "total": 0, "found": 0}
        while True:
            records = await consumer.poll(timeout_ms=TAIL_POLL_MS)
            self.scanned += len(records)
            rows = await self._matching(records)
            self.found += len(rows)
            if rows:
                yield "records", [self._row(row) for row in rows[-TAIL_ROWS_MAX:]]
            yield "progress", {"scanned": self.scanned, "total": 0, "found": self.found}
            await asyncio.sleep(0)

    async def _polled(self, consumer: Any) -> AsyncIterator[list[ConsumerRecord]]:
        probe = self._query.probe
        while not consumer.is_at_end:
            before = 0 if probe is None else probe.skipped
            records = await consumer.poll(timeout_ms=POLL_MS)
            self.scanned += len(records) + (0 if probe is None else probe.skipped - before)
            yield records
            await asyncio.sleep(0)  # others have their turn between two polls that were served from memory

    async def _matching(self, records: list[ConsumerRecord]) -> list[Line]:
        lines = [Line(*record) for record in records]
        if self._query.raw_holds is not None:
            lines = [line for line in lines if self._query.raw_holds(line)]
        if not lines:
            return []
        decoded = await self._decoder.decode(lines)
        return decoded if self._query.holds is None else [line for line in decoded if self._query.holds(line)]

    def _row(self, line: Line) -> dict[str, Any]:
        return row_of(line, characters_max=self._characters_max)

    def _progress(self) -> Event:
        self._last_progress = time.monotonic()
        return "progress", {"scanned": self.scanned, "total": self.total, "found": self.found}

    def _is_time(self) -> bool:
        return time.monotonic() - self._last_progress >= PROGRESS_SECONDS


def _newest(rows: list[Line], count: int) -> list[Line]:
    return sorted(rows, key=lambda row: (row.timestamp_ms, row.offset), reverse=True)[:count]
