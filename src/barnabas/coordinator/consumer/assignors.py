"""Who gets which partition: the assignors that a broker runs for groups of the consumer protocol, as pure functions.

``uniform`` gives every member as much as the next and leaves partitions where they are as far as that allows; ``range``
gives each member neighbouring partitions, the same ones of every topic. Nothing here knows epochs or time: who may
have a partition already is for :mod:`barnabas.coordinator.consumer.reconciliation`. Topics that do not exist are not
named here.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.model.ids import Uuid

Partitions = Mapping[Uuid, frozenset[int]]
NO_PARTITIONS: Final[Partitions] = {}


class MemberSpec(NamedTuple):
    """What an assignor knows of a member: what it wants, and what it was to have until now."""

    member_id: str
    instance_id: str | None
    topics: frozenset[Uuid]
    assigned: Partitions


Assignor = Callable[[Sequence[MemberSpec], Mapping[Uuid, int]], dict[str, Partitions]]
_Pair = tuple[Uuid, int]


def uniform(members: Sequence[MemberSpec], partition_counts: Mapping[Uuid, int]) -> dict[str, Partitions]:
    """Everyone the same number, give or take one where all want the same topics; and as few moves as possible.

    Where wishes differ no partition could go to somebody who wants it and has at least two fewer.
    """
    if not members:
        return {}
    ordered = sorted(members, key=lambda member: member.member_id)
    kept = _kept(ordered, partition_counts)
    if all(member.topics == ordered[0].topics for member in ordered):
        _even_out(ordered, kept, partition_counts)
    else:
        _balance(ordered, kept, partition_counts)
    return {member_id: _by_topic(pairs) for member_id, pairs in kept.items()}


def range_(members: Sequence[MemberSpec], partition_counts: Mapping[Uuid, int]) -> dict[str, Partitions]:
    """Of each topic a run of neighbours to every subscriber, in the order of instance ids, then of member ids.

    Members with the same topics get the same partitions of topics of the same size, so these can be joined.
    """
    ordered = sorted(members, key=lambda member: (member.instance_id is None, member.instance_id or member.member_id))
    result: dict[str, dict[Uuid, frozenset[int]]] = {member.member_id: {} for member in ordered}
    for topic, subscribers in sorted(_subscribers(ordered).items()):
        each, extra = divmod(partition_counts[topic], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + each + (1 if index < extra else 0)
            if start < end:
                result[member_id][topic] = frozenset(range(start, end))
            start = end
    return {**result}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}


# --- what uniform consists of ---------------------------------------------------------------------------------------


def _kept(members: Iterable[MemberSpec], partition_counts: Mapping[Uuid, int]) -> dict[str, set[_Pair]]:
    """What each member has and may keep: still wanted, still there, and of no member before it."""
    taken: set[_Pair] = set()
    kept: dict[str, set[_Pair]] = {}
    for member in members:
        mine = {
            (topic, partition)
            for topic, partitions in member.assigned.items()
            if topic in member.topics
            for partition in partitions
            if partition < partition_counts[topic] and (topic, partition) not in taken
        }
        taken |= mine
        kept[member.member_id] = mine
    return kept


def _subscribers(members: Iterable[MemberSpec]) -> dict[Uuid, list[str]]:
    subscribers: dict[Uuid, list[str]] = {}
    for member in members:
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(member.member_id)
    return subscribers


def _by_topic(pairs: Iterable[_Pair]) -> Partitions:
    topics: dict[Uuid, set[int]] = {}
    for topic, partition in pairs:
        topics.setdefault(topic, set()).add(partition)
    return {topic: frozenset(topics[topic]) for topic in sorted(topics)}


def _even_out(members: Sequence[MemberSpec], kept: dict[str, set[_Pair]], partition_counts: Mapping[Uuid, int]) -> None:
    """All members want the same: first take what is above a member's share, then deal out what is free."""
    free = [(topic, partition) for topic in sorted(members[0].topics) for partition in range(partition_counts[topic])]
    each, extra = divmod(len(free), len(members))
    # Whoever has most already gets the shares that are larger by one: it would have to give up the most otherwise.
    room: deque[tuple[str, int]] = deque()
    for index, member_id in enumerate(sorted(kept, key=lambda member_id: (-len(kept[member_id]), member_id))):
        share = each + (1 if index < extra else 0)
        for pair in sorted(kept[member_id])[share:]:
            kept[member_id].discard(pair)
        if len(kept[member_id]) < share:
            room.append((member_id, share - len(kept[member_id])))
    held = set().union(*kept.values())
    for pair in free:
        if pair in held:
            continue
        # One to each in turn, so that the partitions of a busy topic do not all go to the same member.
        member_id, left = room.popleft()
        kept[member_id].add(pair)
        if left > 1:
            room.append((member_id, left - 1))
    assert not room


def _balance(members: Sequence[MemberSpec], kept: dict[str, set[_Pair]], partition_counts: Mapping[Uuid, int]) -> None:
    """Members want different topics: hand out what is free, then move partitions while a move evens things out."""
    subscribers = _subscribers(members)
    # The topics that fewest may have come first: the others can still make up for them.
    topics = sorted(subscribers, key=lambda topic: (len(subscribers[topic]), topic))
    held = set().union(*kept.values())
    for topic in topics:
        least = [(len(kept[member_id]), member_id) for member_id in subscribers[topic]]
        heapq.heapify(least)
        for partition in range(partition_counts[topic]):
            if (topic, partition) not in held:
                count, member_id = least[0]
                kept[member_id].add((topic, partition))
                heapq.heapreplace(least, (count + 1, member_id))
    owned: dict[Uuid, dict[str, list[_Pair]]] = {topic: {} for topic in topics}
    for member_id in kept:
        for pair in sorted(kept[member_id]):
            owned[pair[0]].setdefault(member_id, []).append(pair)
    # Every move lessens the sum of the squares of what members have, so this ends.
    has_moved = True
    while has_moved:
        has_moved = False
        for topic in topics:
            has_moved |= _balance_topic(subscribers[topic], owned[topic], kept)


def _balance_topic(subscribers: Sequence[str], owned: dict[str, list[_Pair]], kept: dict[str, set[_Pair]]) -> bool:
    """Whether partitions of one topic were moved from those who have most to those who have least."""
    most = [(-len(kept[member_id]), member_id) for member_id in owned]
    least = [(len(kept[member_id]), member_id) for member_id in subscribers]
    heapq.heapify(most)
    heapq.heapify(least)
    has_moved = False
    while most:
        source, target = most[0][1], least[0][1]
        # Entries of either heap are put right only when they come up: loads change through moves of this very loop.
        if not owned[source]:
            heapq.heappop(most)
        elif -most[0][0] != len(kept[source]):
            heapq.heapreplace(most, (-len(kept[source]), source))
        elif least[0][0] != len(kept[target]):
            heapq.heapreplace(least, (len(kept[target]), target))
        elif len(kept[source]) - len(kept[target]) < 2:
            break
        else:
            pair = owned[source].pop()
            kept[source].discard(pair)
            owned.setdefault(target, []).append(pair)
            kept[target].add(pair)
            has_moved = True
    return has_moved
