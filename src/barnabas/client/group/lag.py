"""How far a group is behind: in records, and in time.

In records it is the end of a partition less what is committed. In time it is the newest record's timestamp less that of
the first record that the group has not read: so a group that keeps up is zero behind, however old the last record is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.offsets import LATEST_TIMESTAMP, MAX_TIMESTAMP, list_offsets
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records import decode_all

FETCHES_MAX: Final = 16  # at once
NAMED_VERSION_MAX: Final = 12  # from 13 on a fetch speaks of topic ids
FETCH_BYTES_MAX: Final = 1  # a broker gives a whole batch all the same


class Lag(NamedTuple):
    committed: int
    end: int
    behind_ms: int | None  # None if the records' times do not tell

    @property
    def records(self) -> int:
        return max(self.end - self.committed, 0)


async def lags(cluster: Cluster, committed: Mapping[TopicPartition, int]) -> dict[TopicPartition, Lag]:
    """Of each partition that still exists."""
    topics = await cluster.look_up({place.topic for place in committed})
    places = [
        place
        for place in sorted(committed)
        if place.topic in topics and place.partition < len(topics[place.topic].partitions)
    ]
    if not places:
        return {}
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST_TIMESTAMP))
    late = [place for place in places if committed[place] < ends[place].offset]
    newest = await list_offsets(cluster, dict.fromkeys(late, MAX_TIMESTAMP)) if late else {}
    turns = asyncio.Semaphore(FETCHES_MAX)

    async def behind_ms(place: TopicPartition) -> int | None:
        async with turns:
            unread_ms = await timestamp_at(cluster, place, committed[place])
        newest_ms = newest[place].timestamp_ms
        return None if unread_ms is None or newest_ms < 0 else max(newest_ms - unread_ms, 0)

    behind = dict(zip(late, await asyncio.gather(*map(behind_ms, late)), strict=True))
    return {place: Lag(committed[place], ends[place].offset, behind.get(place, 0)) for place in places}


async def timestamp_at(cluster: Cluster, place: TopicPartition, offset: int) -> int | None:
    """The time of the first record at or after an offset; None if there is none, or it cannot be read."""

    async def attempt() -> FetchResponse.PartitionData:
        leader = cluster.leader_of(place)
        if leader is None:
            raise ApiError(errors.LEADER_NOT_AVAILABLE, f"{place} has no leader at the moment.")
        part = FetchRequest.FetchPartition(
            partition=place.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES_MAX,
            topics=[FetchRequest.FetchTopic(topic=place.topic, partitions=[part])],
        )
        answer = await cluster.call(leader, request, FetchResponse, version_max=NAMED_VERSION_MAX)
        found = answer.responses[0].partitions[0]
        row = error_of(found.error_code)
        if row is errors.OFFSET_OUT_OF_RANGE and offset < found.log_start_offset:
            return found
        if row is not errors.NONE:
            raise ApiError(row, f"{place}: {row.text}")
        return found

    try:
        found = await cluster.retrying(attempt)
    except ApiError as error:
        if error.error is errors.OFFSET_OUT_OF_RANGE:
            return None
        raise
    if found.error_code:
        # What the group would read next was deleted: it will go on at the start of the log.
        return await timestamp_at(cluster, place, found.log_start_offset)
    data = found.records
    records = decode_all(data) if isinstance(data, bytes | bytearray | memoryview) else []
    return next((record.timestamp for record in records if record.offset >= offset), None)
