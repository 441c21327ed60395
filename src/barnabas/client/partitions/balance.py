"""An even spread of partitions over members that moves as little as possible from where they are.

Pure, and the same for whoever computes it: everything is sorted first. The sticky assignors call it; who may claim
what, and what a move costs, is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.model.ids import TopicPartition


class Claim(NamedTuple):
    """What a member says it has, and the generation in which it got it."""

    owned: Sequence[TopicPartition]
    generation: int


def balanced(
    counts: Mapping[str, int], topics: Mapping[str, Sequence[str]], claims: Mapping[str, Claim]
) -> dict[str, list[TopicPartition]]:
    """Partitions for each member: with equal subscriptions no two members differ by more than one.

    ``counts`` has the size of every topic, ``topics`` what each member subscribes to, ``claims`` what it had.
    """
    spread = _Spread(counts, topics)
    for partition, member_id in _rightful(claims).items():
        if member_id in spread.readers.get(partition.topic, ()) and partition.partition < counts[partition.topic]:
            spread.give(partition, member_id)
    for partition in spread.free():
        spread.give(partition, min(spread.readers[partition.topic], key=spread.load))
    while spread.level():
        pass
    return {member_id: sorted(partitions) for member_id, partitions in spread.held.items()}


def _rightful(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Who had each partition last. Two who say so of one generation are both wrong."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id in sorted(claims):
        owned, generation = claims[member_id]
        for partition in owned:
            known = best.get(partition)
            if known is None or generation > known[0]:
                best[partition] = generation, member_id
            elif generation == known[0]:
                best[partition] = generation, None
    return {partition: member_id for partition, (_, member_id) in sorted(best.items()) if member_id is not None}


class _Spread:
    def __init__(self, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> None:
        self.held: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in sorted(topics)}
        wanted = {member_id: frozenset(names) for member_id, names in topics.items()}
        self.readers = {
            topic: readers
            for topic in sorted(counts)
            if (readers := [member_id for member_id in self.held if topic in wanted[member_id]])
        }
        self._counts = counts
        self._taken: set[TopicPartition] = set()

    def load(self, member_id: str) -> int:
        return len(self.held[member_id])

    def give(self, partition: TopicPartition, member_id: str) -> None:
        self.held[member_id][partition] = None
        self._taken.add(partition)

    def free(self) -> list[TopicPartition]:
        """Those that nobody has, the choosiest first: what few may read must not find them full."""
        partitions = [
            TopicPartition(topic, number)
            for topic in sorted(self.readers, key=lambda topic: (len(self.readers[topic]), topic))
            for number in range(self._counts[topic])
        ]
        return [partition for partition in partitions if partition not in self._taken]

    def level(self) -> bool:
        """One partition from each member to one with less, where that evens out anything; whether it did.

        Each move makes the sum of squares of the loads smaller, so this ends; one at a time, so that nobody gives
        away what he must then be given back.
        """
        has_moved = False
        for member_id in sorted(self.held, key=self.load, reverse=True):
            for partition in sorted(self.held[member_id], reverse=True):
                target = min(self.readers[partition.topic], key=self.load)
                if self.load(target) + 1 < self.load(member_id):
                    del self.held[member_id][partition]
                    self.held[target][partition] = None
                    has_moved = True
                    break
        return has_moved
