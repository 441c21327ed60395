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
    """Collects the changes of one batch and makes the next index."""

    __slots__ = ("_imbalanced", "_leaderless", "_leaderships", "_members", "_memberships", "_reassigning", "_with_elr")

    def __init__(self, index: PartitionIndex) -> None:
        self._memberships = index.memberships
        self._members: dict[int, Any] = {}  # by broker: its open mutation
        self._leaderships = index.leaderships.mutate()
        self._leaderless = index.leaderless.mutate()
        self._imbalanced = index.imbalanced.mutate()
        self._with_elr = index.with_elr.mutate()
        self._reassigning = index.reassigning.mutate()

    def update(self, key: TopicIdPartition, old: PartitionImage | None, new: PartitionImage | None) -> None:
        """The partition was ``old`` and is ``new``; None where it did not or does not exist."""
        before = _members(old)
        after = _members(new)
        if before != after:
            for broker_id in sorted(before - after):
                del self._open(broker_id)[key]
            for broker_id in sorted(after - before):
                self._open(broker_id)[key] = None
        self._count_leader(old, -1)
        self._count_leader(new, 1)
        _mark(self._leaderless, key, new is not None and not new.has_leader)
        _mark(self._imbalanced, key, new is not None and not new.has_preferred_leader)
        _mark(self._with_elr, key, new is not None and bool(new.elr or new.last_known_elr))
        _mark(self._reassigning, key, new is not None and new.is_reassigning)

    def _open(self, broker_id: int) -> Any:
        members = self._members.get(broker_id)
        if members is None:
            members = self._members[broker_id] = self._memberships.get(broker_id, _NO_KEYS).mutate()
        return members

    def _count_leader(self, partition: PartitionImage | None, step: int) -> None:
        if partition is not None and partition.has_leader:
            count = self._leaderships.get(partition.leader, 0) + step
            if count:
                self._leaderships[partition.leader] = count
            else:
                del self._leaderships[partition.leader]

    def build(self) -> PartitionIndex:
        memberships = self._memberships.mutate()
        for broker_id, members in self._members.items():
            keys = members.finish()
            if keys:
                memberships[broker_id] = keys
            else:
                memberships.pop(broker_id, None)
        return PartitionIndex(
            memberships=memberships.finish(),
            leaderships=self._leaderships.finish(),
            leaderless=self._leaderless.finish(),
            imbalanced=self._imbalanced.finish(),
            with_elr=self._with_elr.finish(),
            reassigning=self._reassigning.finish(),
        )


def _members(partition: PartitionImage | None) -> frozenset[int]:
    return frozenset() if partition is None else frozenset(partition.isr + partition.elr)


def _mark(keys: Any, key: TopicIdPartition, is_marked: bool) -> None:
    if is_marked:
        keys[key] = None
    else:
        keys.pop(key, None)
