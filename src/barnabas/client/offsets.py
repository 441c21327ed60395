"""Where to start reading, and what the leaders say about offsets: earliest, latest, by time.

The consumer resolves its starts here and the admin client answers ``list_offsets`` with it. Positions themselves are
the consumer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3

ISOLATION_LEVELS: Final[Mapping[str, int]] = {"read_uncommitted": 0, "read_committed": 1}


class Start(NamedTuple):
    """Where in a partition reading begins."""

    kind: Literal["offset", "timestamp", "earliest", "latest"]
    value: int = 0  # an offset, a timestamp in ms, or how far from the edge

    @classmethod
    def at(cls, offset: int) -> Start:
        return cls("offset", offset)

    @classmethod
    def at_time(cls, timestamp_ms: int) -> Start:
        """The first record that is not older; the end if there is none."""
        return cls("timestamp", timestamp_ms)

    @classmethod
    def after_first(cls, count: int) -> Start:
        return cls("earliest", count)

    @classmethod
    def before_last(cls, count: int) -> Start:
        return cls("latest", -count)


EARLIEST: Final = Start("earliest")
LATEST: Final = Start("latest")


class ListedOffset(NamedTuple):
    offset: int  # -1 if no record is as new as the time that was asked for
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, ListedOffset]:
    """The offset of a time, or of one of the special times above, for each partition; asks until all are known."""
    found: dict[TopicPartition, ListedOffset] = {}

    async def attempt() -> None:
        missing = {place: timestamps[place] for place in sorted(timestamps) if place not in found}
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in missing:
            by_leader.setdefault(await _leader(cluster, place), []).append(place)
        for leader, places in sorted(by_leader.items()):
            request = _request(places, missing, ISOLATION_LEVELS[isolation_level], cluster.settings.request_timeout_ms)
            answer = await cluster.call(leader, request, ListOffsetsResponse)
            for topic in answer.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    if part.error_code != errors.NONE.code:
                        raise ApiError(error_of(part.error_code), f"{place}: {error_of(part.error_code).text}")
                    if place in missing:
                        found[place] = ListedOffset(part.offset, part.timestamp, part.leader_epoch)
        if len(found) < len(timestamps):
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, "A broker left partitions out of its answer.")

    await cluster.retrying(attempt, timeout_ms=timeout_ms)
    return found


async def resolve(
    cluster: Cluster, starts: Mapping[TopicPartition, Start], *, isolation_level: str
) -> dict[TopicPartition, int]:
    """Starts as offsets. Those that count from an edge stay inside of the log."""
    offsets = {place: start.value for place, start in starts.items() if start.kind == "offset"}
    wanted = {place: start for place, start in starts.items() if start.kind != "offset"}
    if not wanted:
        return offsets
    edges = {place for place, start in wanted.items() if start.kind == "timestamp" or start.value}
    asked = {place: start for place, start in wanted.items() if place not in edges}
    latest = await _edge(cluster, [*_of(asked, "latest"), *edges], LATEST_TIMESTAMP, isolation_level)
    counted = [place for place in edges if wanted[place].kind != "timestamp"]
    earliest = await _edge(cluster, [*_of(asked, "earliest"), *counted], EARLIEST_TIMESTAMP, isolation_level)
    timed = {place: start.value for place, start in wanted.items() if start.kind == "timestamp"}
    by_time = await list_offsets(cluster, timed, isolation_level=isolation_level) if timed else {}
    for place, start in wanted.items():
        if start.kind == "timestamp":
            offset = by_time[place].offset
            offsets[place] = latest[place] if offset == NO_OFFSET else offset
        elif not start.value:
            offsets[place] = (latest if start.kind == "latest" else earliest)[place]
        else:
            edge = latest if start.kind == "latest" else earliest
            offsets[place] = min(max(edge[place] + start.value, earliest[place]), latest[place])
    return offsets


def _of(starts: Mapping[TopicPartition, Start], kind: str) -> list[TopicPartition]:
    return [place for place, start in starts.items() if start.kind == kind]


async def _edge(
    cluster: Cluster, places: Iterable[TopicPartition], timestamp: int, isolation_level: str
) -> dict[TopicPartition, int]:
    timestamps = dict.fromkeys(sorted(places), timestamp)
    if not timestamps:
        return {}
    listed = await list_offsets(cluster, timestamps, isolation_level=isolation_level)
    return {place: entry.offset for place, entry in listed.items()}


async def _leader(cluster: Cluster, place: TopicPartition) -> int:
    topic = await cluster.topic(place.topic, timeout_ms=0)
    if place.partition >= len(topic.partitions):
        raise ApiError(
            errors.UNKNOWN_TOPIC_OR_PARTITION,
            f"Topic {place.topic!r} has partitions 0 to {len(topic.partitions) - 1}, and no {place.partition}.",
        )
    leader = cluster.leader_of(place)
    if leader is None:
        raise ApiError(errors.LEADER_NOT_AVAILABLE, f"{place} has no leader at the moment.")
    return leader


def _request(
    places: list[TopicPartition], timestamps: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for place in places:
        entry = ListOffsetsRequest.ListOffsetsPartition(partition_index=place.partition, timestamp=timestamps[place])
        topics.setdefault(place.topic, []).append(entry)
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        timeout_ms=timeout_ms,
    )
