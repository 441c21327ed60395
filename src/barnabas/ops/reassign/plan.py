"""Which brokers should hold which partitions: pure planning for ``barnabas reassign`` and ``broker decommission``.

A plan moves as little as it can: replicas that are where they may be stay. What is missing goes to the broker with the
fewest replicas, on a rack that the partition has not yet; then leaders are spread, without moving anything more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.model.ids import TopicPartition

Placement = Mapping[TopicPartition, Sequence[int]]


def plan(
    now: Placement, brokers: Mapping[int, str | None], *, replication_factor: int | None = None
) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions whose replicas change, with their new replicas; ``brokers`` may hold them, by id, with racks."""
    load = dict.fromkeys(brokers, 0)
    for replicas in now.values():
        for replica in replicas:
            if replica in load:
                load[replica] += 1
    placed = {key: _place(list(now[key]), brokers, load, replication_factor) for key in sorted(now)}
    _spread_leaders(placed)
    return {key: tuple(replicas) for key, replicas in placed.items() if tuple(replicas) != tuple(now[key])}


def _place(
    replicas: list[int], brokers: Mapping[int, str | None], load: dict[int, int], replication_factor: int | None
) -> list[int]:
    wanted = len(replicas) if replication_factor is None else replication_factor
    if wanted > len(brokers):
        raise ValueError(f"{wanted} replicas need {wanted} brokers, and there are {len(brokers)}")
    kept = [replica for replica in replicas if replica in brokers]
    while len(kept) > wanted:
        load[kept.pop()] -= 1
    # A new replica takes the place of the one that goes, so that a leader's place stays a leader's place.
    result: list[int | None] = [replica if replica in kept else None for replica in replicas[:wanted]]
    result += [None] * (wanted - len(result))
    left = [replica for replica in kept if replica not in result]
    for place, there in enumerate(result):
        if there is None:
            chosen = left.pop(0) if left else _least_loaded(result, brokers, load)
            result[place] = chosen
    return [replica for replica in result if replica is not None]


def _least_loaded(taken: Sequence[int | None], brokers: Mapping[int, str | None], load: dict[int, int]) -> int:
    racks = [brokers[other] for other in taken if other is not None]
    chosen = min(
        (broker for broker in brokers if broker not in taken),
        key=lambda broker: (racks.count(brokers[broker]) if brokers[broker] else 0, load[broker], broker),
    )
    load[chosen] += 1
    return chosen


def _spread_leaders(placed: dict[TopicPartition, list[int]]) -> None:
    """The first replica is preferred as leader: let no broker be first much more often than another."""
    leads: dict[int, int] = {}
    for replicas in placed.values():
        leads[replicas[0]] = leads.get(replicas[0], 0) + 1
    for _, replicas in sorted(placed.items()):
        first = replicas[0]
        least = min(replicas, key=lambda replica: (leads.get(replica, 0), replicas.index(replica)))
        if leads[first] - leads.get(least, 0) > 1:
            replicas.remove(least)
            replicas.insert(0, least)
            leads[first] -= 1
            leads[least] = leads.get(least, 0) + 1
