"""Which partitions a broker is in sync for, which have no leader, which have the wrong one: kept, not searched for.

A broker that goes away must cost as much as it has partitions, not as much as the cluster has. The topics' builder
keeps the index in step with every partition it changes; the controller's decisions read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from immutables import Map

from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.metadata.records import NO_LEADER

Keys: TypeAlias = Map[TopicIdPartition, None]
_NO_KEYS: Keys = Map()


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    memberships: Map[int, Keys] = field(
        default_factory=Map
    )  # by broker: the partitions that have it in their ISR or ELR
    leaderships: Map[int, int] = field(default_factory=Map)  # by broker: how many partitions it leads
    leaderless: Keys = field(default_factory=Map)
    imbalanced: Keys = field(default_factory=Map)  # led by another than the preferred replica
    with_elr: Keys = field(default_factory=Map)
    reassigning: Keys = field(default_factory=Map)

    def of_broker(self, broker_id: int) -> Iterator[TopicIdPartition]:
        """The partitions that have this broker in their ISR or ELR, in a fixed order."""
        return iter(sorted(self.memberships.get(broker_id, _NO_KEYS)))

    def has_leaderships(self, broker_id: int) -> bool:
        return broker_id in self.leaderships


class PartitionIndexBuilder:
    """Collects the changes of one batch and makes the next index. What does not change is not opened."""

    __slots__ = ("_imbalanced", "_index", "_leaderless", "_leaderships", "_members", "_reassigning", "_with_elr")

    def __init__(self, index: PartitionIndex) -> None:
        self._index = index
        self._members: dict[int, _OpenKeys] = {}  # by broker
        self._leaderships: dict[int, int] = {}  # by broker: how many more or fewer
        self._leaderless = _OpenKeys(index.leaderless)
        self._imbalanced = _OpenKeys(index.imbalanced)
        self._with_elr = _OpenKeys(index.with_elr)
        self._reassigning = _OpenKeys(index.reassigning)

    def update(self, key: TopicIdPartition, old: PartitionImage | None, new: PartitionImage | None) -> None:
        """The partition was ``old`` and is ``new``; None where it did not or does not exist."""
        before = old.isr + old.elr if old is not None else ()
        after = new.isr + new.elr if new is not None else ()
        if before != after:
            for broker_id in before:
                if broker_id not in after:
                    self._members_of(broker_id).remove(key)
            for broker_id in after:
                if broker_id not in before:
                    self._members_of(broker_id).add(key)
        self._count_leader(old, new)
        if new is not None and not new.has_leader:
            self._leaderless.add(key)
        elif old is not None and not old.has_leader:
            self._leaderless.remove(key)
        if new is not None and not new.has_preferred_leader:
            self._imbalanced.add(key)
        elif old is not None and not old.has_preferred_leader:
            self._imbalanced.remove(key)
        if new is not None and (new.elr or new.last_known_elr):
            self._with_elr.add(key)
        elif old is not None and (old.elr or old.last_known_elr):
            self._with_elr.remove(key)
        if new is not None and new.is_reassigning:
            self._reassigning.add(key)
        elif old is not None and old.is_reassigning:
            self._reassigning.remove(key)

    def _members_of(self, broker_id: int) -> _OpenKeys:
        members = self._members.get(broker_id)
        if members is None:
            members = self._members[broker_id] = _OpenKeys(self._index.memberships.get(broker_id, _NO_KEYS))
        return members

    def _count_leader(self, old: PartitionImage | None, new: PartitionImage | None) -> None:
        before = old.leader if old is not None else NO_LEADER
        after = new.leader if new is not None else NO_LEADER
        if before != after:
            if before != NO_LEADER:
                self._leaderships[before] = self._leaderships.get(before, 0) - 1
            if after != NO_LEADER:
                self._leaderships[after] = self._leaderships.get(after, 0) + 1

    def build(self) -> PartitionIndex:
        memberships = self._index.memberships
        for broker_id, members in self._members.items():
            keys = members.build()
            if keys:
                memberships = memberships.set(broker_id, keys)
            elif broker_id in memberships:
                memberships = memberships.delete(broker_id)
        leaderships = self._index.leaderships
        for broker_id, more in self._leaderships.items():
            count = leaderships.get(broker_id, 0) + more
            if count:
                leaderships = leaderships.set(broker_id, count)
            elif broker_id in leaderships:
                leaderships = leaderships.delete(broker_id)
        return PartitionIndex(
            memberships=memberships,
            leaderships=leaderships,
            leaderless=self._leaderless.build(),
            imbalanced=self._imbalanced.build(),
            with_elr=self._with_elr.build(),
            reassigning=self._reassigning.build(),
        )


class _OpenKeys:
    """A set of partitions that is opened for changes when the first one comes."""

    __slots__ = ("_keys", "_mutation")

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._mutation: Any = None

    def add(self, key: TopicIdPartition) -> None:
        if self._mutation is None:
            self._mutation = self._keys.mutate()
        self._mutation[key] = None

    def remove(self, key: TopicIdPartition) -> None:
        if self._mutation is None:
            self._mutation = self._keys.mutate()
        self._mutation.pop(key, None)

    def build(self) -> Keys:
        if self._mutation is not None:
            self._keys, self._mutation = self._mutation.finish(), None
        return self._keys
