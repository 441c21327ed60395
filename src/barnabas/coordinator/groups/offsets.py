"""The offsets that the groups of one shard have committed, and those that wait for the end of a transaction.

Changed only by lines of the log; whoever may commit is decided by the group, and how requests are answered in
:mod:`barnabas.coordinator.groups.offset_protocol`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.coordinator.groups.records import OffsetCommitKey, OffsetCommitValue
from barnabas.model.ids import NO_TIMESTAMP, Uuid


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # −1 unless an old client asked for a time of its own
    topic_id: Uuid
    record_offset: int  # where in the log it was committed: of two, the later one counts

    def is_expired(self, *, unused_since_ms: int, retention_ms: int, now_ms: int) -> bool:
        if self.expire_timestamp_ms != NO_TIMESTAMP:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - unused_since_ms >= retention_ms


class Place(NamedTuple):
    group_id: str
    topic: str
    partition: int


class Offsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._pending: dict[int, dict[Place, CommittedOffset]] = {}  # by producer id
        self._producers_of: dict[str, dict[int, None]] = {}  # group id -> producers with an open transaction

    # --- reading --------------------------------------------------------------------------------------------------

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """By topic and partition; not to be changed."""
        return self._by_group.get(group_id, {})

    def places(self, group_id: str) -> Iterator[Place]:
        """Everything that the group has, committed or pending, each place once."""
        seen = {
            Place(group_id, topic, partition): None
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        }
        for producer_id in self._producers_of.get(group_id, ()):
            seen |= {place: None for place in self._pending[producer_id] if place.group_id == group_id}
        return iter(seen)

    def places_of_topics(self, topics: frozenset[str]) -> list[Place]:
        """Everything that any group has of these topics."""
        groups = {**self._by_group, **dict.fromkeys(self._producers_of)}
        return [place for group_id in groups for place in self.places(group_id) if place.topic in topics]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change this offset."""
        place = Place(group_id, topic, partition)
        return any(place in self._pending[producer_id] for producer_id in self._producers_of.get(group_id, ()))

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._producers_of

    # --- the lines of the log -------------------------------------------------------------------------------------

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, *, offset: int, producer_id: int) -> None:
        place = Place(key.group, key.topic, key.partition)
        if value is None:
            self._remove(place)
            return
        committed = CommittedOffset(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=offset,
        )
        if producer_id < 0:
            self._put(place, committed)
        else:
            self._pending.setdefault(producer_id, {})[place] = committed
            self._producers_of.setdefault(place.group_id, {})[producer_id] = None

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        pending = self._pending.pop(producer_id, {})
        for place, committed in pending.items():
            producers = self._producers_of.get(place.group_id)
            if producers is not None:
                producers.pop(producer_id, None)
                if not producers:
                    del self._producers_of[place.group_id]
            known = self.get(*place)
            # A plain commit may have overtaken the transaction, and compaction may show them in either order.
            if is_commit and (known is None or committed.record_offset > known.record_offset):
                self._put(place, committed)

    def _put(self, place: Place, committed: CommittedOffset) -> None:
        self._by_group.setdefault(place.group_id, {}).setdefault(place.topic, {})[place.partition] = committed

    def _remove(self, place: Place) -> None:
        topics = self._by_group.get(place.group_id)
        if topics is not None and place.topic in topics:
            topics[place.topic].pop(place.partition, None)
            if not topics[place.topic]:
                del topics[place.topic]
            if not topics:
                del self._by_group[place.group_id]
        for producer_id in list(self._producers_of.get(place.group_id, ())):
            self._pending[producer_id].pop(place, None)
