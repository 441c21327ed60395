"""What a replica can be in an epoch, what it remembers in that role, and which role may follow which.

Epoch, leader and vote are kept beside the role (``core.py``), because they outlive it. An observer is not a role of its
own: it is a replica outside the voter set, and is only ever Unattached or Follower.

    Unattached   knows no leader; waits for one, or for its election timeout
    Prospective  asks whether it could win (pre-vote, KIP-996) without disturbing anyone's epoch
    Candidate    has a new epoch, voted for itself and asks for votes
    Leader       appends; counts fetches as acknowledgements
    Follower     fetches from a leader
    Resigned     was leader in this epoch, and neither votes nor leads in it again
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.messages import Fetch
from barnabas.raft.quorum import Election
from barnabas.raft.voters import ReplicaKey, Voter

NEVER_MS: Final = 2**62


@dataclass(slots=True)
class Unattached:
    election_deadline_ms: int


@dataclass(slots=True)
class Prospective:
    election: Election
    election_deadline_ms: int


@dataclass(slots=True)
class Candidate:
    election: Election
    election_deadline_ms: int


@dataclass(slots=True)
class Download:
    """A snapshot on its way from the leader. While it is installed, the replica neither fetches nor runs for leader."""

    snapshot: OffsetAndEpoch
    position: int = 0


@dataclass(slots=True)
class Follower:
    fetch_deadline_ms: int
    update_voter_deadline_ms: int
    has_fetched: bool = False  # from this leader in this epoch: from then on it refuses pre-votes
    download: Download | None = None


@dataclass(slots=True)
class Resigned:
    election_deadline_ms: int
    unacknowledged: set[int]
    successors: tuple[ReplicaKey, ...]


@dataclass(slots=True)
class Replica:
    """How far another replica is, as its fetches tell."""

    end_offset: int = -1
    last_fetch_ms: int = -1
    last_fetch_leader_end_offset: int = -1
    last_caught_up_ms: int = -1

    def fetched(self, offset: int, *, leader_end_offset: int, now_ms: int) -> None:
        # Caught up is who has now all that the leader had: at this fetch, or when the previous one arrived.
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.last_fetch_leader_end_offset <= offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.last_fetch_leader_end_offset = leader_end_offset


@dataclass(slots=True)
class PendingFetch:
    request_id: int
    request: Fetch
    deadline_ms: int


@dataclass(slots=True)
class VoterChange:
    """The one change of the voter set that may be under way."""

    request_id: int
    deadline_ms: int
    added: Voter | None = None  # still asked which versions it speaks
    waits_for_commit: bool = True
    offset: int | None = None  # where the Voters record stands


@dataclass(slots=True)
class Leader:
    epoch_start_offset: int
    check_quorum_deadline_ms: int
    begin_epoch_deadline_ms: int
    high_watermark: int | None = None  # unknown until a record of our own epoch is on a majority
    replicas: dict[ReplicaKey, Replica] = field(default_factory=dict)
    fetched_voter_ids: set[int] = field(default_factory=set)  # since the last time they were a majority
    pending_fetches: list[PendingFetch] = field(default_factory=list)
    change: VoterChange | None = None
    must_resign: bool = False


Role: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned

TRANSITIONS: Final[dict[type[Role], frozenset[type[Role]]]] = {
    # Unattached again: a higher epoch, or a vote given. Leader only ever comes from Candidate.
    Unattached: frozenset({Unattached, Prospective, Follower}),
    # Lost or timed out: back to the leader it followed, or to Unattached.
    Prospective: frozenset({Unattached, Candidate, Follower}),
    # Timed out: Prospective in the same epoch.
    Candidate: frozenset({Unattached, Prospective, Leader, Follower}),
    # A higher epoch, with or without its leader; or resignation.
    Leader: frozenset({Unattached, Follower, Resigned}),
    Follower: frozenset({Unattached, Prospective, Follower}),
    # After its election timeout: Unattached in the next epoch. The only voter of a quorum runs again at once.
    Resigned: frozenset({Unattached, Follower, Prospective}),
}
