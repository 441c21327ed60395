"""Whether a leader's log still has what was read before it led: it is asked where the last epoch that was read ends.

A log can get shorter, and then other, when a replica that missed something was made the leader (KIP-320). Which
positions are in doubt is the cursors' to know, and what follows from an answer the fetcher's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.model import errors
from barnabas.model.errors import ApiError, error_of
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

CONSUMER: Final = -1  # no replica


class Doubt(NamedTuple):
    """What is asked about a partition: the epoch of the record read last, and in which epoch the leader is thought."""

    epoch: int
    current_leader_epoch: int


class EpochEnd(NamedTuple):
    """The largest epoch of the leader's log that is not above the one asked for, and the offset behind its end."""

    epoch: int
    offset: int

    @property
    def is_known(self) -> bool:
        return self.epoch > NO_LEADER_EPOCH and self.offset > NO_OFFSET


async def ends_of_epochs(
    cluster: Cluster, leader: int, doubts: Mapping[TopicPartition, Doubt]
) -> dict[TopicPartition, EpochEnd | ApiError]:
    """One request for all. Partitions that the broker does not speak of are among the errors."""
    topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
    for place, doubt in doubts.items():
        topic = topics.setdefault(place.topic, OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=place.topic))
        topic.partitions.append(
            OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                partition=place.partition,
                current_leader_epoch=doubt.current_leader_epoch,
                leader_epoch=doubt.epoch,
            )
        )
    request = OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))
    answer = await cluster.call(leader, request, OffsetForLeaderEpochResponse)
    found: dict[TopicPartition, EpochEnd | ApiError] = {
        place: ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"{place}: the broker did not speak of it.")
        for place in doubts
    }
    for entry in answer.topics:
        for part in entry.partitions:
            place, row = TopicPartition(entry.topic, part.partition), error_of(part.error_code)
            if place in doubts:
                found[place] = (
                    EpochEnd(part.leader_epoch, part.end_offset)
                    if row is errors.NONE
                    else ApiError(row, f"{place}: {row.text}")
                )
    return found
