"""What one round of questions asks of one leader on behalf of groups, and what it answers; nothing is sent here.

Of each partition the end of its log and its newest record's time; of each offset committed there the time of the first
record from it on, which never changes and is asked for once. ``far_lag`` sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.broker.lag.offset_times import LOOK_UPS_MAX, UNKNOWN
from barnabas.model.ids import NO_TIMESTAMP, TopicPartition
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

PARTITIONS_PER_REQUEST_MAX: Final = 500
OFFSETS_PER_REQUEST_MAX: Final = LOOK_UPS_MAX
LATEST: Final = -1
CONSUMER: Final = -1  # the replica id of one who reads what is committed

Times = dict[int, int]  # of the first record from an offset on: UNKNOWN, or NO_TIMESTAMP if there is no record


class Standing(NamedTuple):
    """How a partition stands, as its leader says."""

    leader_epoch: int
    log_start_offset: int
    end_offset: int
    newest_ms: int
    times: Times

    def time_of(self, offset: int) -> int:
        return self.times.get(offset, UNKNOWN) if offset < self.end_offset else NO_TIMESTAMP

    def lasting(self, leader_epoch: int, offset: int) -> int:
        """A time that still holds: of a record that is there, in a log whose leader is the same."""
        if leader_epoch != self.leader_epoch or offset < self.log_start_offset:
            return UNKNOWN
        time = self.times.get(offset, UNKNOWN)
        return UNKNOWN if time == NO_TIMESTAMP else time  # a record may have come


class Questions:
    def __init__(self, before: Mapping[TopicPartition, Standing]) -> None:
        """``before``: the answers of the last round."""
        self._before = before
        self._asked: dict[TopicPartition, tuple[int, Times]] = {}  # with the leader's epoch
        self.standings: dict[TopicPartition, Standing] = {}  # the answers

    def add(self, place: TopicPartition, leader_epoch: int, offset: int) -> None:
        before = self._before.get(place)
        known = before.lasting(leader_epoch, offset) if before is not None else UNKNOWN
        self._asked.setdefault(place, (leader_epoch, {}))[1][offset] = known

    def requests(self) -> Iterator[ListOffsetsRequest]:
        """One after the other; a partition with very many offsets is in several."""
        request = _Request()
        for place, (leader_epoch, times) in sorted(self._asked.items()):
            wanted = sorted(offset for offset, time in times.items() if time == UNKNOWN)
            at = 0
            while at < len(wanted) or not at:
                if request.is_full:
                    yield request.message
                    request = _Request()
                part = wanted[at : at + OFFSETS_PER_REQUEST_MAX - request.offset_count]
                request.add(place, leader_epoch, part)
                at += max(len(part), 1)
        if request.partition_count:
            yield request.message

    def take(self, response: ListOffsetsResponse, request: ListOffsetsRequest) -> None:
        """What it answers. A row that says something is wrong, or that nobody asked for, tells nothing."""
        said = {
            (topic.name, row.partition_index): row
            for topic in response.topics
            for row in topic.partitions
            if not row.error_code
        }
        for topic in request.topics:
            for asked in topic.partitions:
                row = said.get((topic.name, asked.partition_index))
                if row is not None:
                    self._take(TopicPartition(topic.name, asked.partition_index), asked.unread_offsets or [], row)

    def _take(
        self, place: TopicPartition, offsets: list[int], row: ListOffsetsResponse.ListOffsetsPartitionResponse
    ) -> None:
        leader_epoch, times = self._asked[place]
        if place not in self.standings:
            for offset in times:
                if offset < row.log_start_offset:
                    times[offset] = UNKNOWN  # the record that was known is gone, and the first unread one is another
        # A broker that does not know the question gives no times at all.
        times.update(zip(offsets, row.unread_timestamps, strict=False))
        self.standings[place] = Standing(leader_epoch, row.log_start_offset, row.offset, row.newest_timestamp, times)


class _Request:
    """One request while it is put together."""

    def __init__(self) -> None:
        self.message = ListOffsetsRequest(replica_id=CONSUMER)
        self.partition_count = self.offset_count = 0

    @property
    def is_full(self) -> bool:
        return self.partition_count >= PARTITIONS_PER_REQUEST_MAX or self.offset_count >= OFFSETS_PER_REQUEST_MAX

    def add(self, place: TopicPartition, leader_epoch: int, offsets: list[int]) -> None:
        topics = self.message.topics
        if not topics or topics[-1].name != place.topic:
            topics.append(ListOffsetsRequest.ListOffsetsTopic(name=place.topic))
        topics[-1].partitions.append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=place.partition,
                current_leader_epoch=leader_epoch,
                timestamp=LATEST,
                unread_offsets=offsets,
            )
        )
        self.partition_count += 1
        self.offset_count += len(offsets)
