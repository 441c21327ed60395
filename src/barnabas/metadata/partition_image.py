"""One partition as the controller knows it: who replicates it, who is in sync, who leads, in which epoch.

A change is merged into a new value; nothing here decides on one (``partition_change`` and ``leadership`` do).
Everybody reads it: decisions, the replicas of a broker, the handlers of Metadata and Produce.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from barnabas.metadata.records import NO_CHANGE, NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord
from barnabas.model.errors import Malformed
from barnabas.model.ids import ZERO_UUID, Uuid

UNASSIGNED_DIRECTORY: Final = ZERO_UUID
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x01")
MIGRATING_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
RESERVED_DIRECTORIES: Final = 100  # ids below this number name no directory


def is_reserved_directory(directory: Uuid) -> bool:
    return int.from_bytes(directory) < RESERVED_DIRECTORIES


class LeaderRecoveryState(enum.IntEnum):
    RECOVERED = 0
    RECOVERING = 1  # elected uncleanly and not yet done with what that takes


class TopicIdPartition(NamedTuple):
    topic_id: Uuid
    partition: int


class PartitionImage(NamedTuple):
    replicas: tuple[int, ...]  # in preferred order
    directories: tuple[Uuid, ...]  # of each replica
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()  # eligible leader replicas (KIP-966)
    last_known_elr: tuple[int, ...] = ()  # holds the last leader of a partition that lost its ISR and ELR
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = LeaderRecoveryState.RECOVERED

    @classmethod
    def of(cls, record: PartitionRecord) -> PartitionImage:
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(record.directories, len(record.replicas)),
            isr=tuple(record.isr),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            adding=tuple(record.adding_replicas),
            removing=tuple(record.removing_replicas),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
        )

    def merged(self, change: PartitionChangeRecord) -> PartitionImage:
        """The partition after a change. A leader named in the change, be it the old one, begins a new epoch."""
        replicas = self.replicas if change.replicas is None else tuple(change.replicas)
        has_new_epoch = change.leader != NO_LEADER_CHANGE
        state = change.leader_recovery_state
        return PartitionImage(
            replicas=replicas,
            directories=_directories(
                self.directories if change.directories is None else change.directories, len(replicas)
            ),
            isr=self.isr if change.isr is None else tuple(change.isr),
            elr=self.elr if change.eligible_leader_replicas is None else tuple(change.eligible_leader_replicas),
            last_known_elr=self.last_known_elr if change.last_known_elr is None else tuple(change.last_known_elr),
            adding=self.adding if change.adding_replicas is None else tuple(change.adding_replicas),
            removing=self.removing if change.removing_replicas is None else tuple(change.removing_replicas),
            leader=change.leader if has_new_epoch else self.leader,
            leader_epoch=self.leader_epoch + has_new_epoch,
            partition_epoch=self.partition_epoch + 1,
            leader_recovery_state=self.leader_recovery_state if state == NO_CHANGE else state,
        )

    def without_elr(self) -> PartitionImage:
        """What a ClearElrRecord leaves: a change of its own, so the partition's epoch moves."""
        return self._replace(elr=(), last_known_elr=(), partition_epoch=self.partition_epoch + 1)

    def record(self, topic_id: Uuid, index: int) -> PartitionRecord:
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing),
            adding_replicas=list(self.adding),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        return self.leader == (self.replicas[0] if self.replicas else NO_LEADER)

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def directory_of(self, broker_id: int) -> Uuid:
        """The directory of a replica; a broker that is none has been assigned none."""
        if broker_id in self.replicas:
            return self.directories[self.replicas.index(broker_id)]
        return UNASSIGNED_DIRECTORY


def _directories(directories: list[Uuid] | tuple[Uuid, ...], replica_count: int) -> tuple[Uuid, ...]:
    if len(directories) == replica_count:
        return tuple(directories)
    # Clusters older than directories (KIP-858) name none.
    if directories:
        raise Malformed(f"a partition has {replica_count} replicas and {len(directories)} directories")
    return (MIGRATING_DIRECTORY,) * replica_count
