"""Offsets, asked for: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, and what expires by itself.

Whether the group lets someone commit was decided before (the group shard asks the group); this writes the lines, reads
the offsets and finds those that are too old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from barnabas.coordinator.groups.offsets import CommittedOffset, Offsets
from barnabas.coordinator.groups.records import offset_key, offset_value
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects, ProducerIdEpoch
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, NO_TIMESTAMP, ZERO_UUID, Uuid
from barnabas.model.settings import INT64_MAX
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

LINE_OVERHEAD_BYTES_MAX: Final = 32  # what a record takes in a batch beside its key and value

FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics


class FetchOffsets(NamedTuple):
    """One group of an OffsetFetch; answered with the response's group."""

    group: OffsetFetchRequest.OffsetFetchRequestGroup
    require_stable: bool


_Commit = OffsetCommitRequest.OffsetCommitRequestPartition | TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


class Subscriber(Protocol):
    """What expiry must know of a group."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None: ...


class OffsetProtocol:
    def __init__(self, offsets: Offsets, settings: Callable[[], GroupSettings], tally: GroupTally) -> None:
        self._offsets = offsets
        self._settings = settings
        self._tally = tally

    # --- committing -----------------------------------------------------------------------------------------------

    def commit(
        self, asked: GroupRequest, message: OffsetCommitRequest, now_ms: int, effects: Effects
    ) -> OffsetCommitResponse:
        retention_ms = message.retention_time_ms
        expire_ms = NO_TIMESTAMP if retention_ms < 0 else min(now_ms + retention_ms, INT64_MAX)
        lines = _Lines(message.group_id, now_ms, expire_ms, self._settings())
        for topic in message.topics:
            topic_id = topic.topic_id if topic.topic_id != ZERO_UUID else asked.topic_ids.get(topic.name, ZERO_UUID)
            lines.add(topic.name, topic_id, topic.partitions)
        results = lines.put_into(effects)
        self._tally.offset_commits.mark(len(effects.records))
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponse.OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponse.OffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=next(results).code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def commit_in_transaction(
        self, asked: GroupRequest, message: TxnOffsetCommitRequest, now_ms: int, effects: Effects
    ) -> TxnOffsetCommitResponse:
        """The lines count when the producer's transaction is committed; until then the offsets are unstable."""
        lines = _Lines(message.group_id, now_ms, NO_TIMESTAMP, self._settings())
        for topic in message.topics:
            lines.add(topic.name, asked.topic_ids.get(topic.name, ZERO_UUID), topic.partitions)
        results = lines.put_into(effects)
        self._tally.offset_commits.mark(len(effects.records))
        if effects.records:
            effects.producer = ProducerIdEpoch(message.producer_id, message.producer_epoch)
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                            partition_index=each.partition_index, error_code=next(results).code
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    # --- reading --------------------------------------------------------------------------------------------------

    def fetch(self, asked: FetchOffsets) -> list[FetchedTopic]:
        group_id, topics = asked.group.group_id, asked.group.topics
        if topics is None:
            return [
                FetchedTopic(
                    name=name,
                    partitions=[
                        self._fetched(group_id, name, ZERO_UUID, index, asked.require_stable)
                        for index in sorted(partitions)
                    ],
                )
                for name, partitions in sorted(self._offsets.of_group(group_id).items())
            ]
        return [
            FetchedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    self._fetched(group_id, topic.name, topic.topic_id, index, asked.require_stable)
                    for index in topic.partition_indexes
                ],
            )
            for topic in topics
        ]

    def _fetched(
        self, group_id: str, topic: str, topic_id: Uuid, partition: int, require_stable: bool
    ) -> FetchedPartition:
        if require_stable and self._offsets.is_pending(group_id, topic, partition):
            return nothing_committed(partition, errors.UNSTABLE_OFFSET_COMMIT)
        committed = self._offsets.get(group_id, topic, partition)
        if committed is None or _is_of_another_topic(committed, topic_id):
            return nothing_committed(partition)
        return FetchedPartition(
            partition_index=partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )

    # --- deleting -------------------------------------------------------------------------------------------------

    def delete(self, group: Subscriber, message: OffsetDeleteRequest, effects: Effects) -> OffsetDeleteResponse:
        response = OffsetDeleteResponse()
        for topic in message.topics:
            is_read = group.is_subscribed_to(topic.name)
            error = errors.GROUP_SUBSCRIBED_TO_TOPIC if is_read else errors.NONE
            results = []
            for each in topic.partitions:
                place = (message.group_id, topic.name, each.partition_index)
                if not is_read and (self._offsets.get(*place) is not None or self._offsets.is_pending(*place)):
                    effects.record(offset_key(*place), None)
                results.append(
                    OffsetDeleteResponse.OffsetDeleteResponsePartition(
                        partition_index=each.partition_index, error_code=error.code
                    )
                )
            response.topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        self._tally.offset_deletions.mark(len(effects.records))
        effects.is_atomic = False
        return response

    def delete_all(self, group_id: str, effects: Effects) -> None:
        for place in self._offsets.places(group_id):
            effects.record(offset_key(*place), None)
            self._tally.offset_deletions.mark()
        effects.is_atomic = False

    def delete_topics(self, names: frozenset[str], effects: Effects) -> None:
        for place in self._offsets.places_of_topics(names):
            effects.record(offset_key(*place), None)
        effects.is_atomic = False

    def expire(self, group_id: str, group: Subscriber, now_ms: int, effects: Effects) -> bool:
        """Write tombstones for what is too old; whether nothing of the group is left."""
        retention_ms = self._settings().retention_ms
        is_nothing_left = True
        for topic, partitions in self._offsets.of_group(group_id).items():
            is_read = group.is_subscribed_to(topic)
            for partition, committed in partitions.items():
                unused_since_ms = group.offsets_unused_since_ms(committed.commit_timestamp_ms)
                if (
                    not is_read
                    and unused_since_ms is not None
                    and committed.is_expired(unused_since_ms=unused_since_ms, retention_ms=retention_ms, now_ms=now_ms)
                    and not self._offsets.is_pending(group_id, topic, partition)
                ):
                    effects.record(offset_key(group_id, topic, partition), None)
                    self._tally.offset_expirations.mark()
                else:
                    is_nothing_left = False
        effects.is_atomic = False
        return is_nothing_left and not self._offsets.has_open_transaction(group_id)


class _Lines:
    """The lines of one commit, in the order in which its partitions are named; all of them, or none if too large."""

    def __init__(self, group_id: str, now_ms: int, expire_ms: int, settings: GroupSettings) -> None:
        self._group_id = group_id
        self._now_ms = now_ms
        self._expire_ms = expire_ms
        self._settings = settings
        self._lines: list[tuple[bytes, bytes]] = []
        self._results: list[WireError] = []
        self._size_bytes = 0

    def add(self, topic: str, topic_id: Uuid, partitions: Iterable[_Commit]) -> None:
        for each in partitions:
            metadata = each.committed_metadata or ""
            if len(metadata) > self._settings.metadata_bytes_max:
                self._results.append(errors.OFFSET_METADATA_TOO_LARGE)
                continue
            key = offset_key(self._group_id, topic, each.partition_index)
            value = offset_value(
                offset=each.committed_offset,
                leader_epoch=each.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp_ms=self._now_ms,
                expire_timestamp_ms=self._expire_ms,
                topic_id=topic_id,
            )
            self._lines.append((key, value))
            self._size_bytes += len(key) + len(value) + LINE_OVERHEAD_BYTES_MAX
            self._results.append(errors.NONE)

    def put_into(self, effects: Effects) -> Iterator[WireError]:
        if self._size_bytes > self._settings.record_bytes_max:
            return iter([errors.INVALID_COMMIT_OFFSET_SIZE] * len(self._results))
        for key, value in self._lines:
            effects.record(key, value)
        return iter(self._results)


def nothing_committed(partition: int, error: WireError = errors.NONE) -> FetchedPartition:
    return FetchedPartition(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error.code,
    )


def _is_of_another_topic(committed: CommittedOffset, topic_id: Uuid) -> bool:
    """A topic of the same name was deleted and made again since."""
    return ZERO_UUID not in (committed.topic_id, topic_id) and committed.topic_id != topic_id


def partition_errors(
    topics: Iterable[OffsetFetchRequest.OffsetFetchRequestTopics], error: WireError
) -> list[FetchedTopic]:
    return [
        FetchedTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[nothing_committed(index, error) for index in topic.partition_indexes],
        )
        for topic in topics
    ]
