"""How a leader is found: votes asked for and given, pre-votes, and what a replica learns of leaders and epochs.

A vote is given at most once per epoch and only to a replica whose log has all that ours has; that the vote is on the
disk before the answer leaves is seen to by ``machine.py``, which puts the state first among the effects. The roles
Unattached, Prospective and Candidate live here; ``leading.py`` and ``following.py`` take over from them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_BROKER, ZERO_UUID
from barnabas.raft.core import Core
from barnabas.raft.events import Alarm, Reply
from barnabas.raft.messages import (
    BeginQuorumEpoch,
    BeginQuorumEpochResponse,
    LeaderFacts,
    Vote,
    VoteResponse,
)
from barnabas.raft.roles import NEVER_MS, Candidate, Follower, Leader, Prospective, Resigned, Unattached
from barnabas.raft.voters import Endpoint, ReplicaKey

R = TypeVar("R", bound=LeaderFacts)


class Elections(Core):
    # Learning who leads ----------------------------------------

    def _voter_only_error(self, sender_id: int, epoch: int) -> WireError | None:
        if epoch < self.epoch:
            return errors.FENCED_LEADER_EPOCH
        return errors.INVALID_REQUEST if sender_id < 0 else None

    def _leader_only_error(self, epoch: int) -> WireError | None:
        if epoch < self.epoch:
            return errors.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return errors.UNKNOWN_LEADER_EPOCH
        if not self.is_leader:
            return errors.NOT_LEADER_OR_FOLLOWER
        return errors.BROKER_NOT_AVAILABLE if self.is_shutting_down else None

    def _is_for_us(self, key: ReplicaKey) -> bool:
        """A request names the replica it is meant for, unless it comes from a time before directory ids."""
        if key.id == NO_BROKER:
            return True
        return key.id == self.local.id and key.directory_id in (ZERO_UUID, self.local.key.directory_id)

    def _is_consistent(self, leader_id: int, epoch: int) -> bool:
        """An epoch has one leader; who says otherwise, or that we lead when we do not, is not to be believed."""
        if leader_id == NO_BROKER or epoch != self.epoch:
            return leader_id != self.local.id or epoch < self.epoch
        if leader_id == self.local.id:
            return isinstance(self.role, Leader | Resigned)
        return not self.has_leader or leader_id == self.leader_id

    def _observe(self, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]) -> bool:
        """Follow what a peer knows of the present epoch. False if it cannot be true."""
        if not self._is_consistent(leader_id, epoch):
            self._emit(
                Alarm(
                    f"a peer says that {leader_id} leads epoch {epoch}; replica {self.local.id} knows {self.leader_id} "
                    f"in epoch {self.epoch}"
                )
            )
            return False
        endpoints = endpoints or self.log.voters.endpoints_of(leader_id)
        is_known = leader_id != NO_BROKER and bool(endpoints)
        if epoch > self.epoch:
            if is_known:
                self._become_follower(epoch, leader_id, endpoints)
            elif leader_id != NO_BROKER or self.may_lead:
                # A leader that nobody can say how to reach cannot be followed yet, only remembered. An epoch without
                # one is for voters alone: its candidate may never win, and an observer that went ahead of the leader
                # would be refused by it from then on.
                self._become_unattached(epoch, leader_id)
        elif epoch == self.epoch and is_known and leader_id != self.local.id:
            knows_more = isinstance(self.role, Follower) and len(endpoints) > len(self.leader_endpoints)
            if not isinstance(self.role, Follower | Prospective) or not self.has_leader or knows_more:
                self._become_follower(epoch, leader_id, endpoints)
        return True

    def _observe_response(self, response: LeaderFacts) -> bool | None:
        """What every answer is asked first. True or False: it is dealt with, well or badly. None: go on with it."""
        error = response.error
        if response.epoch < self.epoch or error is errors.UNKNOWN_LEADER_EPOCH:
            return False  # whoever is behind needs time, and may stay behind for long
        if response.epoch > self.epoch or error in (errors.FENCED_LEADER_EPOCH, errors.NOT_LEADER_OR_FOLLOWER):
            self._observe(response.leader_id, response.epoch, response.endpoints)
            return False  # asked again after a rest, of whoever is right by then
        if response.leader_id != NO_BROKER and not self.has_leader:
            if not self._observe(response.leader_id, response.epoch, response.endpoints):
                return False
            return None if error is errors.NONE else True
        return None if error is errors.NONE else False

    def _on_begin_quorum_epoch(self, request_id: int, request: BeginQuorumEpoch) -> None:
        error = self._voter_only_error(request.leader_id, request.epoch)
        if error is None and not self._observe(request.leader_id, request.epoch, request.endpoints):
            error = errors.INVALID_REQUEST
        if error is None and not self._is_for_us(request.voter):
            error = errors.INVALID_VOTER_KEY
        self._emit(Reply(request_id, self._signed(BeginQuorumEpochResponse(), error)))

    def _signed(self, response: R, error: WireError | None = None) -> R:
        """The answer with what every answer says first: the error, the epoch and whom this replica follows in it."""
        endpoints = self.local.endpoints if self.leader_id == self.local.id else self.leader_endpoints
        return replace(
            response, error=error or errors.NONE, leader_id=self.leader_id, epoch=self.epoch, endpoints=endpoints
        )

    # Giving votes ----------------------------------------

    def _on_vote(self, request_id: int, request: Vote) -> None:
        error = self._vote_error(request)
        is_granted = False
        if error is None:
            if request.epoch > self.epoch:
                self._become_unattached(request.epoch)
            if not self._is_for_us(request.voter):
                error = errors.INVALID_VOTER_KEY
            else:
                is_granted = self._may_grant(request)
                if is_granted and not request.is_pre_vote:
                    self._give_vote(request.replica)
        self._emit(Reply(request_id, self._signed(VoteResponse(is_granted=is_granted), error)))

    def _vote_error(self, request: Vote) -> WireError | None:
        end = request.log_end
        # A candidate has raised its epoch above its log's; one that only asks has not.
        is_epoch_wrong = end.epoch > request.epoch or (end.epoch == request.epoch and not request.is_pre_vote)
        if end.offset < 0 or end.epoch < 0 or is_epoch_wrong:
            return errors.INVALID_REQUEST
        return self._voter_only_error(request.replica.id, request.epoch)

    def _may_grant(self, request: Vote) -> bool:
        role = self.role
        is_up_to_date = self.log.is_up_to_date(request.log_end)
        if request.is_pre_vote:
            # Who hears its leader wants no election. Who does not, or has no leader, says whether the log would do.
            hears_leader = isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched)
            return is_up_to_date and not hears_leader
        if not isinstance(role, Unattached | Prospective):
            return False
        voted = self.state.voted
        if voted is not None:
            return voted.id == request.replica.id and voted.directory_id in (ZERO_UUID, request.replica.directory_id)
        return is_up_to_date and not self.has_leader

    def _give_vote(self, candidate: ReplicaKey) -> None:
        role = self.role
        assert isinstance(role, Unattached | Prospective)
        if self.state.voted is None:
            self.state = self.state._replace(voted=candidate)
            if isinstance(role, Unattached):
                # Its chance to win is at least as good as ours, so it gets a full timeout.
                role.election_deadline_ms = self._election_deadline_ms() if self.may_lead else NEVER_MS

    # Asking for votes ----------------------------------------

    def _poll_unattached(self, role: Unattached) -> None:
        if self._may_run():
            is_due = self.now_ms >= role.election_deadline_ms or self.is_only_voter
            if is_due:
                self._become_prospective()
                return
        self._fetch_from_anyone()

    def _may_run(self) -> bool:
        """An election is for those who may lead, will stay, and whose log is not about to be replaced."""
        return self.may_lead and not self.is_shutting_down and self.installing is None

    def _fetch_from_anyone(self) -> None:
        """Overridden by ``following.py``: a fetch also asks who leads."""

    def _poll_prospective(self, role: Prospective) -> None:
        if role.election.is_won:
            self._become_candidate()
        elif role.election.is_lost or self.now_ms >= role.election_deadline_ms:
            self._return_from_prospective()
        else:
            self._ask_for_votes(role)

    def _return_from_prospective(self) -> None:
        endpoints = self.leader_endpoints or self.log.voters.endpoints_of(self.leader_id)
        if self.has_leader and self.leader_id != self.local.id and endpoints:
            self._become_follower(self.epoch, self.leader_id, endpoints)
        else:
            self._become_unattached(self.epoch, self.leader_id)

    def _poll_candidate(self, role: Candidate) -> None:
        if role.election.is_won:
            self._become_leader(role)
        elif self.now_ms >= role.election_deadline_ms and not self.is_shutting_down:
            self._become_prospective()
        elif not role.election.is_lost:
            self._ask_for_votes(role)

    def _become_leader(self, role: Candidate) -> None:
        raise NotImplementedError  # leading.py

    def _ask_for_votes(self, role: Prospective | Candidate) -> None:
        for voter_id in role.election.unanswered:
            voter = self.log.voters.get(voter_id)
            assert voter is not None, "the voter set does not change while a replica runs for leader"
            is_pre_vote = isinstance(role, Prospective)
            self._send(voter_id, Vote(self.local.key, voter.key, self.epoch, self.log.end, is_pre_vote))

    def _on_vote_response(self, peer_id: int, response: VoteResponse) -> bool:
        handled = self._observe_response(response)
        if handled is not None:
            return handled
        # Answers are only heard in the role that asked, so a pre-vote is never counted as a vote.
        role = self.role
        if isinstance(role, Prospective | Candidate):
            if response.is_granted:
                role.election.grant(peer_id)
            else:
                role.election.reject(peer_id)
        return True
