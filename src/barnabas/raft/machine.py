"""The Raft machine of the metadata quorum: an event and the time in, effects out. No clock, no chance, no I/O.

It is KRaft: followers pull, a fetch acknowledges, a diverging log is cut by epochs, elections begin with a pre-vote
(KIP-996), voters change one at a time through records in the log (KIP-853). This module routes events to the part that
decides (``elections.py``, ``leading.py``, ``following.py``, ``reconfiguration.py``), then asks the role what is due.
One voter elects itself in its first step. ``driver.py`` performs the effects on a disk and a network, the simulation in
memory.
"""

from __future__ import annotations

from typing import Final, assert_never

from barnabas.model.ids import NO_BROKER
from barnabas.raft.events import (
    Answered,
    Asked,
    Effect,
    Event,
    InstallFailed,
    LogStartMoved,
    LogSynced,
    Persist,
    Proposed,
    QuorumState,
    ResignAsked,
    ShutdownAsked,
    SnapshotInstalled,
    SnapshotTaken,
    Started,
    TimerFired,
)
from barnabas.raft.following import Following
from barnabas.raft.messages import (
    AddVoter,
    AskSupport,
    BeginQuorumEpoch,
    BeginQuorumEpochResponse,
    EndQuorumEpoch,
    EndQuorumEpochResponse,
    Fetch,
    FetchResponse,
    FetchSnapshot,
    FetchSnapshotResponse,
    RemoveVoter,
    Request,
    Response,
    SupportResponse,
    UpdateVoter,
    UpdateVoterResponse,
    Vote,
    VoterChangeResponse,
    VoteResponse,
)
from barnabas.raft.quorum import Election
from barnabas.raft.reconfiguration import Reconfiguration
from barnabas.raft.roles import NEVER_MS, Candidate, Follower, Leader, Prospective, Resigned, Unattached

ROLES_PER_STEP_MAX: Final = 8  # Resigned, Prospective, Candidate, Leader is the longest way; more would be a circle


class RaftMachine(Reconfiguration, Following):
    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take one event. The state that must survive comes first among the effects, if it has changed."""
        self.now_ms = max(self.now_ms, now_ms)
        self._effects = []
        before = self.state
        self._dispatch(event)
        self._poll()
        self._announce()
        effects, self._effects = self._effects, []
        if self.state != before or isinstance(event, Started):
            effects.insert(0, Persist(self.state))
        assert self.state.epoch >= before.epoch
        return effects

    def _dispatch(self, event: Event) -> None:
        match event:
            case TimerFired():
                pass  # the poll after every event does what is due
            case Asked():
                self._on_request(event.request_id, event.request)
            case Answered():
                self._on_answered(event)
            case LogSynced():
                self._on_log_synced(event)
            case Proposed():
                self._on_proposed(event)
            case Started():
                self._on_started(event)
            case SnapshotTaken():
                self._on_snapshot_taken(event)
            case LogStartMoved():
                self.log.start_after(event.snapshot)
            case SnapshotInstalled():
                self._on_snapshot_installed(event)
            case InstallFailed():
                self._on_install_failed(event)
            case ResignAsked():
                self._on_resign_asked(event)
            case ShutdownAsked():
                self.is_shutting_down = True
            case _:
                assert_never(event)

    def _poll(self) -> None:
        """Let the role do what is due, until it does not change any more."""
        for _ in range(ROLES_PER_STEP_MAX):
            role = self.role
            match role:
                case Unattached():
                    self._poll_unattached(role)
                case Prospective():
                    self._poll_prospective(role)
                case Candidate():
                    self._poll_candidate(role)
                case Leader():
                    self._poll_leader(role)
                case Follower():
                    self._poll_follower(role)
                case Resigned():
                    self._poll_resigned(role)
                case _:
                    assert_never(role)
            if self.role is role:
                return
        raise AssertionError(f"replica {self.local.id} goes in circles: {self.role}")

    # Starting ----------------------------------------

    def _on_started(self, event: Started) -> None:
        """Begin as what the disk says we were, with the care that a crash demands."""
        state, key = self.state, self.local.key
        deadline_ms = self._election_deadline_ms() if self.may_lead else NEVER_MS
        self.role = Unattached(deadline_ms)
        if state.epoch < self.log.last_epoch:
            self.state = QuorumState(self.log.last_epoch)
        elif state.leader_id == key.id:
            # Never again leader in this epoch: records that were not durable may be gone, and an offset of an epoch
            # must not be given to two records.
            others = {voter_id for voter_id in self.log.voters.ids if voter_id != key.id}
            self.role = Resigned(self._election_deadline_ms(), others, ())
        elif state.leader_id != NO_BROKER:
            endpoints = self.log.voters.endpoints_of(state.leader_id)
            if endpoints:
                self._become_follower(state.epoch, state.leader_id, endpoints)
        elif state.voted == key and self.may_lead:
            election = Election(self.log.voters.ids)
            election.grant(key.id)
            self.role = Candidate(election, deadline_ms)

    def _on_snapshot_taken(self, event: SnapshotTaken) -> None:
        latest = self.log.latest_snapshot
        if latest is None or event.snapshot > latest:
            self.log.latest_snapshot = event.snapshot

    # Requests and responses ----------------------------------------

    def _on_request(self, request_id: int, request: Request) -> None:
        match request:
            case Fetch():
                self._on_fetch(request_id, request)
            case Vote():
                self._on_vote(request_id, request)
            case BeginQuorumEpoch():
                self._on_begin_quorum_epoch(request_id, request)
            case EndQuorumEpoch():
                self._on_end_quorum_epoch(request_id, request)
            case FetchSnapshot():
                self._on_fetch_snapshot(request_id, request)
            case AddVoter():
                self._on_add_voter(request_id, request)
            case RemoveVoter():
                self._on_remove_voter(request_id, request)
            case UpdateVoter():
                self._on_update_voter(request_id, request)
            case AskSupport():
                raise AssertionError("the listener answers ApiVersions, not the machine")
            case _:
                assert_never(request)

    def _on_answered(self, event: Answered) -> None:
        if not self._is_expected(event.peer_id, event.number):
            return
        connection = self._connection(event.peer_id)
        connection.number = None
        response = event.response
        is_good = response is not None and self._on_response(event.peer_id, response)
        if event.is_refused:
            self._on_refused(event.peer_id)
        if not is_good:
            connection.backoff_end_ms = self.now_ms + self.settings.retry_backoff_ms

    def _on_response(self, peer_id: int, response: Response) -> bool:
        """Return whether the peer may be asked again at once."""
        match response:
            case FetchResponse():
                return self._on_fetch_response(peer_id, response)
            case VoteResponse():
                return self._on_vote_response(peer_id, response)
            case BeginQuorumEpochResponse():
                return self._on_begin_quorum_epoch_response(peer_id, response)
            case EndQuorumEpochResponse():
                return self._on_end_quorum_epoch_response(peer_id, response)
            case FetchSnapshotResponse():
                return self._on_fetch_snapshot_response(peer_id, response)
            case VoterChangeResponse():
                return self._on_voter_change_response(peer_id, response)
            case UpdateVoterResponse():
                return self._on_update_voter_response(peer_id, response)
            case SupportResponse():
                return self._on_support_response(peer_id, response)
            case _:
                assert_never(response)

    # When to wake ----------------------------------------

    @property
    def next_deadline_ms(self) -> int:
        """When TimerFired is due if nothing else happens; NEVER_MS if never."""
        deadlines = [
            connection.deadline_ms if connection.number is not None else connection.backoff_end_ms
            for connection in self._connections.values()
            if connection.number is not None or connection.backoff_end_ms > self.now_ms
        ]
        role = self.role
        if isinstance(role, Leader):
            deadlines += [pending.deadline_ms for pending in role.pending_fetches]
            if role.change is not None:
                deadlines.append(role.change.deadline_ms)
            if not self.is_only_voter:
                deadlines += [role.check_quorum_deadline_ms, role.begin_epoch_deadline_ms]
        elif isinstance(role, Follower):
            if self._may_run():
                deadlines.append(role.fetch_deadline_ms)
            deadlines.append(role.update_voter_deadline_ms)
        elif not self.is_shutting_down and (self._may_run() or isinstance(role, Resigned)):
            deadlines.append(role.election_deadline_ms)
        # What is due and could not be done waits for another event, not for the clock.
        return min((deadline for deadline in deadlines if deadline > self.now_ms), default=NEVER_MS)
