"""What all parts of the Raft machine share: epoch, vote, leader, role, the way from role to role, and requests out.

Here a transition is made, never decided: ``elections.py``, ``leading.py`` and ``following.py`` decide. At most one
request is under way per peer, and only its answer is listened to. Chance comes from the seed alone, so a machine that
is given the same events does the same things.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.model.ids import NO_BROKER
from barnabas.raft.events import Committed, Effect, LeaderChanged, Learn, QuorumState, Send, Sync, Truncate
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, LogView, OffsetAndEpoch
from barnabas.raft.messages import Request
from barnabas.raft.quorum import Election
from barnabas.raft.roles import (
    NEVER_MS,
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, Voter

UPDATE_VOTER_PERIOD_FACTOR: Final = 3  # in fetch timeouts: let a few fetches go first
APPLICANT_DIVISOR: Final = 4  # of a fetch timeout: enough for a few fetches to bring a small log
CHECK_QUORUM_FACTOR: Final = 1.5  # in fetch timeouts: leave time for the way there and back


@dataclass(slots=True)
class Connection:
    """The one request that may be under way to a peer, and how long the peer is left alone after a failure."""

    number: int | None = None
    deadline_ms: int = 0
    backoff_end_ms: int = 0

    def is_waiting(self, now_ms: int) -> bool:
        return self.number is not None and now_ms < self.deadline_ms

    def is_ready(self, now_ms: int) -> bool:
        return not self.is_waiting(now_ms) and now_ms >= self.backoff_end_ms


class Core:
    def __init__(
        self,
        *,
        local: Voter,
        settings: RaftSettings,
        log: LogView,
        state: QuorumState,
        seed: int,
        bootstrap_ids: tuple[int, ...] = (),
    ) -> None:
        self.local = local
        self.settings = settings
        self.log = log
        self.state = state
        self.role: Role = Unattached(NEVER_MS)
        self.leader_endpoints: tuple[Endpoint, ...] = ()
        # What this replica knows to be committed; only ever grows. What is in a snapshot is.
        self.high_watermark = -1 if log.latest_snapshot in (None, BOOTSTRAP_SNAPSHOT) else log.latest_snapshot.offset
        self.installing: OffsetAndEpoch | None = None
        self.is_shutting_down = False
        self.now_ms = 0
        self._bootstrap_ids = bootstrap_ids  # nodes to ask for the leader: negative ids, as their own are not known yet
        self._effects: list[Effect] = []
        self._connections: dict[int, Connection] = {}
        self._number = 0
        self._announced = (NO_BROKER, -1)
        self._random_state = seed & 0xFFFFFFFFFFFFFFFF

    # What the replica is ----------------------------------------

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        return self.state.leader_id

    @property
    def acting_leader_id(self) -> int:
        """Who can be asked to lead; not us, if we were leader in this epoch before we resigned or crashed."""
        return NO_BROKER if self.leader_id == self.local.id and not self.is_leader else self.leader_id

    @property
    def has_leader(self) -> bool:
        return self.state.leader_id != NO_BROKER

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self.log.voters.is_voter(self.local.key)

    @property
    def may_lead(self) -> bool:
        return self.log.may_lead(self.local.key, self.high_watermark)

    @property
    def is_only_voter(self) -> bool:
        return self.log.voters.is_only_voter(self.local.key)

    @property
    def may_stop(self) -> bool:
        """A leader first hands over, until all that live have heard of it; everyone else may leave at once."""
        if not self.is_voter or self.is_only_voter:
            return True
        return not isinstance(self.role, Leader) and not (isinstance(self.role, Resigned) and self.role.unacknowledged)

    def _below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1 (SplitMix64)."""
        self._random_state = (self._random_state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = self._random_state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (mixed ^ (mixed >> 31)) % limit if limit > 0 else 0

    def _election_deadline_ms(self) -> int:
        timeout_ms = self.settings.election_timeout_ms
        return self.now_ms + timeout_ms + self._below(timeout_ms)

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    # From role to role ----------------------------------------

    def _become(self, role: Role) -> None:
        assert type(role) in TRANSITIONS[type(self.role)], f"{self.role} may not become {role}"
        self._leave(self.role)
        self.role = role
        self._connections.clear()

    def _leave(self, role: Role) -> None:
        """Overridden where a role has something to settle."""

    def _announce(self) -> None:
        """At the end of a step, so that nobody hears of roles that were only passed through."""
        leader_id = self.acting_leader_id
        if (leader_id, self.epoch) == self._announced:
            return
        self._announced = (leader_id, self.epoch)
        start = self.role.epoch_start_offset if isinstance(self.role, Leader) else None
        self._emit(LeaderChanged(leader_id, self.epoch, start))

    def _become_unattached(self, epoch: int, leader_id: int = NO_BROKER) -> None:
        """In a higher epoch, or back from an election that led nowhere."""
        assert epoch >= self.epoch
        role = self.role
        deadline_ms = self._election_deadline_ms()
        if not self.may_lead:
            deadline_ms = NEVER_MS
        elif isinstance(role, Candidate | Unattached | Resigned) or (
            isinstance(role, Prospective) and not role.election.is_lost and self.now_ms < role.election_deadline_ms
        ):
            # Others' elections must not postpone ours for ever, so the clock runs on.
            deadline_ms = min(deadline_ms, role.election_deadline_ms)
        voted = self.state.voted if epoch == self.epoch else None
        self.state = QuorumState(epoch, leader_id, voted)
        self.leader_endpoints = ()
        self._become(Unattached(deadline_ms))

    def _become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        assert epoch >= self.epoch
        assert leader_id != self.local.id
        voted = self.state.voted if epoch == self.epoch else None
        self.state = QuorumState(epoch, leader_id, voted)
        self.leader_endpoints = endpoints
        self._emit(Learn(leader_id, endpoints))
        self._become(Follower(self.now_ms + self.settings.fetch_timeout_ms, self._next_voter_change_ms()))

    def _next_voter_change_ms(self) -> int:
        """When to ask for a change of the voters: soon for one who wants to be a voter, since the quorum is weaker
        without it; else it can wait, and whoever moves does so rarely."""
        timeout_ms = self.settings.fetch_timeout_ms
        is_applicant = self.settings.auto_join_enable and not self.is_voter
        return self.now_ms + (
            timeout_ms // APPLICANT_DIVISOR if is_applicant else UPDATE_VOTER_PERIOD_FACTOR * timeout_ms
        )

    def _become_prospective(self) -> None:
        assert self.may_lead
        election = Election(self.log.voters.ids)
        election.grant(self.local.id)
        # The leader it followed stays known: if the others still hear it, this replica goes back.
        self._become(Prospective(election, self._election_deadline_ms()))

    def _become_candidate(self) -> None:
        assert self.may_lead
        self.state = QuorumState(self.epoch + 1, NO_BROKER, self.local.key)
        self.leader_endpoints = ()
        election = Election(self.log.voters.ids)
        election.grant(self.local.id)
        self._become(Candidate(election, self._election_deadline_ms()))

    def _become_resigned(self, successors: tuple[int, ...]) -> None:
        voters = self.log.voters
        keys = tuple(voter.key for voter in map(voters.get, successors) if voter is not None)
        self._become(Resigned(self._election_deadline_ms(), set(successors), keys))

    # The log ----------------------------------------

    def _sync(self) -> None:
        self._emit(Sync(self.log.end_offset, self.log.generation))

    def _truncate(self, end_offset: int) -> None:
        self.log.truncate(end_offset)
        self._emit(Truncate(end_offset))
        if not self.log.is_synced:
            self._sync()  # the sync under way belongs to the time before the cut and will not count

    def _commit(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._emit(Committed(high_watermark))

    # Requests out ----------------------------------------

    def _connection(self, peer_id: int) -> Connection:
        connection = self._connections.get(peer_id)
        if connection is None:
            connection = self._connections[peer_id] = Connection()
        return connection

    def _send(self, peer_id: int, request: Request) -> bool:
        assert peer_id != self.local.id
        connection = self._connection(peer_id)
        if not connection.is_ready(self.now_ms):
            return False
        self._number += 1
        connection.number = self._number
        connection.deadline_ms = self.now_ms + self.settings.request_timeout_ms
        self._emit(Send(peer_id, self._number, request))
        return True

    def _is_expected(self, peer_id: int, number: int) -> bool:
        connection = self._connections.get(peer_id)
        return connection is not None and connection.number == number
