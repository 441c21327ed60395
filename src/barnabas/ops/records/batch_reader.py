"""Batches of partitions as they lie in the log, with what only they know: epochs, producers, markers, the log's edges.

``consume`` reads records through the client's consumer, which hides all this; it reads here when a format or an option
asks for it, and ``topic analyze`` always does. Nothing is committed, and nobody is a member of anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.fetch.isolation import Visibility
from barnabas.client.offsets import ISOLATION_LEVELS
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure
from barnabas.wire.batch import BatchHeader, iterate
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records import Record, decode_batch

PARTITION_BYTES_MAX: Final = 1024 * 1024
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
WAIT_MS: Final = 500


class Edges(NamedTuple):
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int


class ReadBatch(NamedTuple):
    partition: TopicPartition
    header: BatchHeader
    data: bytes  # the batch itself
    edges: Edges

    def records(self) -> list[Record]:
        return decode_batch(self.data)


class BatchReader:
    """``ends`` says where to stop, by partition; with ``until_end`` each stops where it ends at the first look."""

    def __init__(
        self,
        cluster: Cluster,
        starts: Mapping[TopicPartition, int],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
        until_end: bool = False,
        isolation_level: str = "read_uncommitted",
        with_control: bool = False,
    ) -> None:
        self._cluster = cluster
        self._next = dict(starts)
        self._ends = dict(ends or {})
        self._until_end = until_end
        self._isolation_level = isolation_level
        self._with_control = with_control
        self.edges: dict[TopicPartition, Edges] = {}

    async def read(self) -> AsyncIterator[ReadBatch]:
        while self._next:
            rounds = await asyncio.gather(*(self._fetch(*each) for each in (await self._by_leader()).items()))
            for answer in rounds:
                for topic in answer.responses if answer is not None else ():
                    for row in topic.partitions:
                        for batch in self._take(self._place(topic, row.partition_index), row):
                            yield batch

    async def _by_leader(self) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for place in sorted(self._next):
            topic = await self._cluster.topic(place.topic)
            found.setdefault(topic.partitions[place.partition].leader, []).append(place)
        return found

    async def _fetch(self, leader: int, places: list[TopicPartition]) -> FetchResponse | None:
        if leader < 0:
            await self._refresh()
            return None
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for place in places:
            row = topics.setdefault(
                place.topic,
                FetchRequest.FetchTopic(topic=place.topic, topic_id=(await self._cluster.topic(place.topic)).id),
            )
            row.partitions.append(
                FetchRequest.FetchPartition(
                    partition=place.partition,
                    fetch_offset=self._next[place],
                    partition_max_bytes=PARTITION_BYTES_MAX,
                )
            )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=ANSWER_BYTES_MAX,
            isolation_level=ISOLATION_LEVELS[self._isolation_level],
            topics=list(topics.values()),
        )
        answer = await self._cluster.call(leader, request, FetchResponse)
        moved = [row for topic in answer.responses for row in topic.partitions if error_of(row.error_code).retriable]
        if moved:
            await self._refresh()
        return answer

    async def _refresh(self) -> None:
        await asyncio.sleep(WAIT_MS / 1000)
        await self._cluster.refresh()

    def _place(self, topic: FetchResponse.FetchableTopicResponse, index: int) -> TopicPartition:
        name = topic.topic or next(
            place.topic for place in self._next if self._cluster.metadata.topics[place.topic].id == topic.topic_id
        )
        return TopicPartition(name, index)

    def _take(self, place: TopicPartition, row: Any) -> list[ReadBatch]:
        error = error_of(row.error_code)
        if error is errors.OFFSET_OUT_OF_RANGE:
            raise Failure(f"{place}: there is no offset {self._next[place]} (any more): say -o start")
        if error is not errors.NONE:
            if error.retriable:
                return []
            raise ApiError(error)
        is_committed = self._isolation_level == "read_committed"
        edges = Edges(row.log_start_offset, row.last_stable_offset, row.high_watermark)
        self.edges[place] = edges
        end = edges.last_stable_offset if is_committed else edges.high_watermark
        if self._until_end:
            self._ends[place] = min(self._ends.get(place, end), end)
        found = self._visible(place, row, edges)
        if self._next[place] >= self._ends.get(place, self._next[place] + 1):
            del self._next[place]
        return found

    def _visible(self, place: TopicPartition, row: Any, edges: Edges) -> list[ReadBatch]:
        aborted = [(each.first_offset, each.producer_id) for each in row.aborted_transactions or ()]
        visibility = Visibility(aborted)
        found = []
        buffer = bytes(row.records or b"")
        for position, header in iterate(buffer):
            data = buffer[position : position + header.size_bytes]
            is_shown = visibility.shows(header)
            if header.is_control:
                for record in decode_batch(data):
                    visibility.marker(header, record)
            if header.base_offset >= self._ends.get(place, header.base_offset + 1):
                self._next[place] = self._ends[place]
                break
            if (is_shown or (header.is_control and self._with_control)) and header.last_offset >= self._next[place]:
                found.append(ReadBatch(place, header, data, edges))
            self._next[place] = max(self._next[place], header.next_offset)
        return found
