"""What the leader knows of every replica, for DescribeQuorum and whoever operates the cluster.

Times become those of the wall here; the machine counts monotonic ones. Only the driver calls this.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.raft.leading import OBSERVER_SESSION_MS
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import Leader, Replica
from barnabas.raft.voters import ReplicaKey, Voter


class ReplicaDescription(NamedTuple):
    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class QuorumDescription(NamedTuple):
    """On a replica that does not lead, offsets and observers are not known and ``is_leader`` is False."""

    is_leader: bool
    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
    nodes: tuple[Voter, ...]  # the voters with their endpoints


def describe(machine: RaftMachine, *, wall_ms: int, monotonic_ms: int) -> QuorumDescription:
    role = machine.role
    replicas = role.replicas if isinstance(role, Leader) else {}

    def wall(moment_ms: int) -> int:
        return -1 if moment_ms < 0 else wall_ms - (monotonic_ms - moment_ms)

    def replica_of(key: ReplicaKey) -> ReplicaDescription:
        if key == machine.local.key:
            return ReplicaDescription(key, machine.log.end_offset, wall_ms, wall_ms)
        replica = replicas.get(key, Replica())
        return ReplicaDescription(key, replica.end_offset, wall(replica.last_fetch_ms), wall(replica.last_caught_up_ms))

    voter_set = machine.log.voters
    observers = sorted(
        key
        for key, replica in replicas.items()
        if not voter_set.is_voter(key) and monotonic_ms - replica.last_fetch_ms < OBSERVER_SESSION_MS
    )
    return QuorumDescription(
        is_leader=isinstance(role, Leader),
        leader_id=machine.leader_id,
        epoch=machine.epoch,
        high_watermark=machine.high_watermark,
        voters=tuple(replica_of(key) for key in voter_set.keys),
        observers=tuple(replica_of(key) for key in observers),
        nodes=voter_set.voters,
    )
