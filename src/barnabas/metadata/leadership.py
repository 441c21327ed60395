"""Who leads a partition next: the order in which replicas are asked, and nothing else.

A live leader in the ISR stays. Otherwise replicas of the ISR in preferred order; with no ISR left, eligible leader
replicas (KIP-966); with neither, the leader that was last known, if it is back; and any live replica only where
unclean election was asked for. What else changes with a leader is in ``partition_change``.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.metadata.records import NO_LEADER


class Election(enum.Enum):
    PREFERRED = "preferred"  # back to the first replica if it is in sync
    ONLINE = "online"  # keep the partition available
    UNCLEAN = "unclean"  # keep it available even at the price of records


class Elected(NamedTuple):
    leader: int
    is_unclean: bool = False


NOBODY = Elected(NO_LEADER)


class Candidates(NamedTuple):
    replicas: Sequence[int]  # in preferred order
    isr: Sequence[int]
    elr: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()
    has_elr: bool = True  # whether the cluster keeps eligible leader replicas at all


def elect(leader: int, candidates: Candidates, election: Election, *, is_acceptable: Callable[[int], bool]) -> Elected:
    """The leader after ``leader``; ``is_acceptable`` says who is alive and has the partition's directory online."""

    def is_in_sync(replica: int) -> bool:
        if replica in candidates.isr:
            return is_acceptable(replica)
        return not candidates.isr and replica in candidates.elr and is_acceptable(replica)

    replicas = candidates.replicas
    if election is Election.PREFERRED and is_in_sync(replicas[0]):
        return Elected(replicas[0])
    if is_in_sync(leader):
        return Elected(leader)
    for replica in replicas:
        if is_in_sync(replica):
            return Elected(replica)
    if candidates.has_elr and not candidates.isr and not candidates.elr and len(candidates.last_known_elr) == 1:
        # It led when the last replica went, so nobody has more; but it may have lost its tail in an unclean shutdown.
        last_known_leader = candidates.last_known_elr[0]
        if is_acceptable(last_known_leader):
            return Elected(last_known_leader, is_unclean=True)
    if election is Election.UNCLEAN:
        for replica in replicas:
            if is_acceptable(replica):
                return Elected(replica, is_unclean=True)
    return NOBODY
