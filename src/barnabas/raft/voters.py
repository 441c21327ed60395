"""Who may vote: replicas with their directory ids and endpoints, and the set of them at some offset of the log.

A set is a value; adding, removing or updating one voter answers a new set or None where the change makes no sense
(KIP-853 allows one change at a time, so that the majorities of neighbouring sets always overlap). How a set is written
as a control record lives in ``control_records.py``; which set is in force is known by ``log_view.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.model.ids import ZERO_UUID, Uuid

KRAFT_VERSION_MIN: Final = 0
KRAFT_VERSION_MAX: Final = 1
KRAFT_VERSION_RECONFIGURABLE: Final = 1  # from this feature level on, voter sets live in the log


class ReplicaKey(NamedTuple):
    """A node and the disk it keeps its log on; a wiped disk is a different replica and may not vote for the old one."""

    id: int
    directory_id: Uuid = ZERO_UUID  # zero where it is unknown: kraft.version 0 knew only ids

    def __str__(self) -> str:
        return f"{self.id}@{self.directory_id}" if self.directory_id != ZERO_UUID else str(self.id)


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_version_min: int = KRAFT_VERSION_MIN
    kraft_version_max: int = KRAFT_VERSION_MAX

    @property
    def id(self) -> int:
        return self.key.id

    def is_replica(self, key: ReplicaKey) -> bool:
        """A voter without a directory id is any replica with its id."""
        return self.key.id == key.id and self.key.directory_id in (ZERO_UUID, key.directory_id)


@dataclass(frozen=True, slots=True)
class VoterSet:
    voters: tuple[Voter, ...] = ()  # by ascending id

    @classmethod
    def of(cls, *voters: Voter) -> VoterSet:
        assert len({voter.id for voter in voters}) == len(voters), "a voter id appears once"
        return cls(tuple(sorted(voters, key=lambda voter: voter.id)))

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.id for voter in self.voters)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(voter.key for voter in self.voters)

    def get(self, voter_id: int) -> Voter | None:
        for voter in self.voters:
            if voter.id == voter_id:
                return voter
        return None

    def voter_of(self, key: ReplicaKey) -> Voter | None:
        """The voter that a replica is, or None for an observer."""
        voter = self.get(key.id)
        return voter if voter is not None and voter.is_replica(key) else None

    def is_voter(self, key: ReplicaKey) -> bool:
        return self.voter_of(key) is not None

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.voters[0].is_replica(key)

    def endpoints_of(self, voter_id: int) -> tuple[Endpoint, ...]:
        voter = self.get(voter_id)
        return voter.endpoints if voter is not None else ()

    def needs_update(self, voter: Voter) -> bool:
        """The set knows this voter, but with other endpoints or versions."""
        known = self.voter_of(voter.key)
        return known is not None and known != voter

    def with_added(self, voter: Voter) -> VoterSet | None:
        return None if voter.id in self.ids else VoterSet.of(*self.voters, voter)

    def with_removed(self, key: ReplicaKey) -> VoterSet | None:
        known = self.get(key.id)
        if known is None or known.key != key or len(self.voters) == 1:
            return None
        return VoterSet(tuple(voter for voter in self.voters if voter is not known))

    def with_updated(self, voter: Voter) -> VoterSet | None:
        if not self.is_voter(voter.key):
            return None
        return VoterSet(tuple(voter if known.id == voter.id else known for known in self.voters))
