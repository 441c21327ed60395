"""How far moves are: the bytes that a new replica has, of those that the partition's leader has.

Both are what the brokers say of their directories; a broker that does not run says nothing, and its replica has no
share. ``reassign status`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.replicas import Reassignment

Sizes = Mapping[int, Mapping[TopicPartition, int]]  # by broker


class Progress(NamedTuple):
    """Of one replica that is being added."""

    broker: int
    copied_bytes: int | None
    size_bytes: int | None  # of the leader's log

    @property
    def percent(self) -> int | None:
        """It is 100 only when the replica has everything: then the move is about to end."""
        if self.copied_bytes is None or self.size_bytes is None:
            return None
        if self.copied_bytes >= self.size_bytes:
            return 100
        return 100 * self.copied_bytes // self.size_bytes


async def progress_of(
    admin: Admin, moves: Mapping[TopicPartition, Reassignment], *, brokers: Iterable[int]
) -> dict[TopicPartition, list[Progress]]:
    """``brokers``: those that run."""
    topics = await admin.describe_topics({key.topic for key in moves})
    leaders = {
        TopicPartition(name, part.partition): part.leader
        for name, topic in topics.items()
        if not isinstance(topic, Exception)
        for part in topic.partitions
    }
    asked: dict[int, list[TopicPartition]] = {}
    for key, move in moves.items():
        for broker in {leaders.get(key, -1), *move.adding} & set(brokers):
            asked.setdefault(broker, []).append(key)
    sizes = {broker: await _sizes(admin, broker, keys) for broker, keys in sorted(asked.items())}
    return {key: progress(key, move, leaders.get(key, -1), sizes) for key, move in moves.items()}


def progress(key: TopicPartition, move: Reassignment, leader: int, sizes: Sizes) -> list[Progress]:
    whole = sizes.get(leader, {}).get(key)
    return [
        # One that runs and has no log of it yet has nothing; one that does not run says nothing.
        Progress(broker, sizes[broker].get(key, 0) if broker in sizes else None, whole)
        for broker in move.adding
    ]


async def _sizes(admin: Admin, broker: int, keys: list[TopicPartition]) -> dict[TopicPartition, int]:
    return {
        key: replica.size_bytes
        for directory in await admin.describe_log_dirs(broker, keys)
        for key, replica in directory.replicas.items()
        if not replica.is_future
    }
