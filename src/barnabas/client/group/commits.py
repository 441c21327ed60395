"""Offsets that a group keeps: stored and asked for at its coordinator, with retries where they help.

Whose offsets, and when, is the consumer's to say. Commits of one consumer go out one after the other, so that an
older one can never overtake a newer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator
from barnabas.client.partitions.protocol import NO_GENERATION, by_topic
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError, error_of
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.transport.versions import Shaped
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

GROUP_LANE: Final = "group"
NAMED_VERSION_MAX: Final = 9  # from 10 on both speak of topic ids
GROUPS_SINCE: Final = 8  # from this version on OffsetFetch asks for several groups
NO_EPOCH: Final = -1

_LOST_COORDINATOR: Final = frozenset({errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR})


class OffsetAndMetadata(NamedTuple):
    offset: int  # of the next record to read
    metadata: str = ""
    leader_epoch: int = NO_EPOCH


def check_storable(offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
    """ValueError for one that no record has: to store "no position yet" would send the group back to the start."""
    for place, entry in offsets.items():
        offset = entry.offset if isinstance(entry, OffsetAndMetadata) else entry
        if offset < 0:
            raise ValueError(
                f"{place}: {offset} is no offset to store; consumer.positions leaves out partitions without a position"
            )


class GroupMetadata(NamedTuple):
    """Who commits: a member in a generation, or nobody in particular."""

    group_id: str
    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


class Commits:
    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        *,
        on_error: Callable[[WireError, int], None] = lambda row, generation: None,
    ) -> None:
        """``on_error`` is told of every error of a commit, and the generation that it was sent in."""
        self._cluster = cluster
        self._coordinator = coordinator
        self._on_error = on_error
        self._turn = asyncio.Lock()

    async def commit(
        self, member: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None
    ) -> None:
        """Store the offsets, all of them, or raise."""
        if not offsets:
            return
        request = _commit_request(member, offsets)

        async def attempt() -> None:
            answer = await self._coordinator.call(
                request, OffsetCommitResponse, lane=GROUP_LANE, version_max=NAMED_VERSION_MAX
            )
            for topic in answer.topics:
                for part in topic.partitions:
                    row = error_of(part.error_code)
                    if row is not errors.NONE:
                        if row in _LOST_COORDINATOR:
                            self._coordinator.forget()
                        self._on_error(row, member.generation)
                        raise ApiError(row, f"{topic.name}-{part.partition_index}: {row.text}")

        async with self._turn:
            await self._cluster.retrying(attempt, timeout_ms=timeout_ms)

    async def fetch(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        is_stable: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What is stored for each partition, or None; with ``is_stable`` waits for transactions that may change it."""
        wanted = sorted(partitions)
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(wanted)
        if not wanted:
            return found

        async def attempt() -> None:
            answer = await self._coordinator.call(
                Shaped(OffsetFetchRequest, lambda version: _fetch_request(version, group_id, wanted, is_stable)),
                OffsetFetchResponse,
                lane=GROUP_LANE,
                version_max=NAMED_VERSION_MAX,
            )
            group = answer.groups[0] if answer.groups else answer
            self._check(error_of(group.error_code), f"group {group_id!r}")
            for topic in group.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    self._check(error_of(part.error_code), str(place))
                    if part.committed_offset != NO_OFFSET and place in found:
                        found[place] = OffsetAndMetadata(
                            part.committed_offset, part.metadata or "", part.committed_leader_epoch
                        )

        await self._cluster.retrying(attempt, timeout_ms=timeout_ms)
        return found

    def _check(self, row: WireError, about: str) -> None:
        if row is errors.NONE:
            return
        if row in _LOST_COORDINATOR:
            self._coordinator.forget()
        raise ApiError(row, f"{about}: {row.text}")


def _commit_request(member: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(offsets).items()
        ],
    )


def _fetch_request(version: int, group_id: str, places: list[TopicPartition], is_stable: bool) -> OffsetFetchRequest:
    topics = by_topic(places)
    # Before version 7 nobody could ask for stable offsets; what is stored may then still be aborted.
    require_stable = is_stable and version >= GROUPS_SINCE - 1
    if version < GROUPS_SINCE:
        return OffsetFetchRequest(
            group_id=group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ],
            require_stable=require_stable,
        )
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
    )
    return OffsetFetchRequest(groups=[group], require_stable=require_stable)
