"""Turns what is wanted of a partition (an ISR, other replicas, a leader) into the one record that makes it so.

A finished reassignment is tidied away, eligible leader replicas are kept in step with the ISR, and a leader is
elected, all in the same record. Whether the change was allowed has been decided by the caller: AlterPartition,
elections, or a broker that came or went.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.metadata.leadership import Candidates, Election, elect
from barnabas.metadata.partition_image import LeaderRecoveryState, PartitionImage, TopicIdPartition
from barnabas.metadata.records import NO_CHANGE, NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord
from barnabas.model.ids import Uuid


@dataclass(slots=True, kw_only=True)
class PartitionChange:
    """Set the targets, then take the ``record``; what is not set stays as it is."""

    key: TopicIdPartition
    partition: PartitionImage
    is_acceptable: Callable[[int], bool]
    default_directory: Callable[[int], Uuid]
    min_isr: int  # min.insync.replicas, but never more than there are replicas
    has_elr: bool
    election: Election = Election.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    leader_recovery_state: int | None = None
    unclean_shutdowns: frozenset[int] = frozenset()  # who may have lost records and is not eligible any more
    directories: dict[int, Uuid] = field(default_factory=dict)

    def record(self) -> PartitionChangeRecord | None:
        """The change, or None if there is nothing to change."""
        old = self.partition
        isr = list(old.isr if self.isr is None else self.isr)
        replicas = list(old.replicas if self.replicas is None else self.replicas)
        adding = list(old.adding if self.adding is None else self.adding)
        removing = list(old.removing if self.removing is None else self.removing)
        isr, replicas, adding, removing = completed_reassignment(isr, replicas, adding, removing)
        elr = self._eligible(isr)
        change = PartitionChangeRecord(partition_id=self.key.partition, topic_id=self.key.topic_id)
        isr, elr = self._elect(change, replicas, isr, elr)
        if change.leader == NO_LEADER_CHANGE and not set(old.replicas) <= set(replicas):
            # A replica was dropped: a new epoch keeps what it still fetches or acknowledges out.
            change.leader = old.leader
        if elr != list(old.elr):
            change.eligible_leader_replicas = elr
        # Without eligible leader replicas the last member stays in the ISR while it is offline.
        if change.isr is None and isr != list(old.isr) and (isr or self.has_elr):
            change.isr = isr
        self._keep_last_leader(change)
        self._assign(change, replicas, adding, removing)
        state = self.leader_recovery_state
        if state is not None and state != old.leader_recovery_state:
            change.leader_recovery_state = state
        return None if _is_no_op(change) else change

    def _eligible(self, isr: list[int]) -> list[int]:
        """Who left the ISR since it fell below its minimum has all that was committed, unless it crashed."""
        if not self.has_elr:
            return list(self.partition.elr)  # from when the cluster kept them: they may lead once more
        if len(isr) >= self.min_isr:
            return []
        known = {*self.partition.elr, *self.partition.isr}
        return sorted(known.difference(isr) - self.unclean_shutdowns)

    def _elect(
        self, change: PartitionChangeRecord, replicas: list[int], isr: list[int], elr: list[int]
    ) -> tuple[list[int], list[int]]:
        old = self.partition
        candidates = Candidates(replicas, isr, elr, old.last_known_elr, self.has_elr)
        elected = elect(old.leader, candidates, self.election, is_acceptable=self.is_acceptable)
        if elected.leader == old.leader:
            return isr, elr if self.has_elr else []
        change.leader = elected.leader
        if elected.leader in elr:
            isr, elr = [elected.leader], [replica for replica in elr if replica != elected.leader]
        if elected.is_unclean:
            # Whoever else was in sync is not in sync with this leader.
            change.isr = [elected.leader]
            if old.leader_recovery_state != LeaderRecoveryState.RECOVERING:
                change.leader_recovery_state = LeaderRecoveryState.RECOVERING
            return isr, []
        return isr, elr if self.has_elr else []

    def _keep_last_leader(self, change: PartitionChangeRecord) -> None:
        old = self.partition
        if not self.has_elr:
            return
        if change.leader == NO_LEADER and old.has_leader and not old.last_known_elr:
            change.last_known_elr = [old.leader]
        elif change.leader >= 0 and old.last_known_elr:
            change.last_known_elr = []

    def _assign(
        self, change: PartitionChangeRecord, replicas: list[int], adding: list[int], removing: list[int]
    ) -> None:
        old = self.partition
        known = {**dict(zip(old.replicas, old.directories, strict=True)), **self.directories}
        directories = [known[replica] if replica in known else self.default_directory(replica) for replica in replicas]
        if directories != list(old.directories):
            change.directories = directories
        if replicas != list(old.replicas):
            change.replicas = replicas
        if removing != list(old.removing):
            change.removing_replicas = removing
        if adding != list(old.adding):
            change.adding_replicas = adding


def completed_reassignment(
    isr: list[int], replicas: list[int], adding: list[int], removing: list[int]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """The same, or with the reassignment done if all new replicas are in sync.

    One that removes more replicas than it adds waits for all that stay, so that it costs no redundancy.
    """
    as_it_is = isr, replicas, adding, removing
    if not adding and not removing:
        return as_it_is
    staying_isr = [replica for replica in isr if replica not in removing]
    staying = [replica for replica in replicas if replica not in removing]
    if removing and (not staying_isr or not staying):
        return as_it_is
    if not set(adding) <= set(staying_isr):
        return as_it_is
    if len(adding) < len(removing) and not set(staying) <= set(staying_isr):
        return as_it_is
    return staying_isr, staying, [], []


def _is_no_op(change: PartitionChangeRecord) -> bool:
    return (
        change.leader == NO_LEADER_CHANGE
        and change.leader_recovery_state == NO_CHANGE
        and change.isr is None
        and change.eligible_leader_replicas is None
        and change.last_known_elr is None
        and change.replicas is None
        and change.removing_replicas is None
        and change.adding_replicas is None
        and change.directories is None
    )
