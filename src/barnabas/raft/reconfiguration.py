"""Changes of the voter set on the leader (KIP-853): one voter at a time, one change at a time.

A new set is in force from the moment it is in the log, and the next change has to wait until it is committed; so any
two sets that could decide at once differ in one voter and their majorities overlap. A leader that removes itself leads
until the change is committed, without counting itself, and then resigns.
"""

from __future__ import annotations

from typing import Final

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.raft.events import Learn, Reply, VotersChange
from barnabas.raft.leading import Leading
from barnabas.raft.messages import (
    AddVoter,
    AskSupport,
    RemoveVoter,
    SupportResponse,
    UpdateVoter,
    UpdateVoterResponse,
    VoterChangeResponse,
)
from barnabas.raft.roles import Leader, VoterChange
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, Voter, VoterSet

CAUGHT_UP_MS_MAX: Final = 3_600_000  # a new voter must have fetched everything within this time


class Reconfiguration(Leading):
    def _change_error(self, role: Leader) -> tuple[WireError, str] | None:
        """Why no change of the voters can begin now, or None."""
        if role.change is not None:
            return errors.REQUEST_TIMED_OUT, "another change of the voters is under way"
        if role.high_watermark is None:
            return errors.REQUEST_TIMED_OUT, "the leader has not committed a record of its epoch yet"
        if self.log.kraft_version < KRAFT_VERSION_RECONFIGURABLE:
            return errors.UNSUPPORTED_VERSION, f"kraft.version {self.log.kraft_version} has no changes of voters"
        written = self.log.voter_sets.last_offset
        if written is None or written >= role.high_watermark:
            return errors.REQUEST_TIMED_OUT, "the latest change of the voters is not committed yet"
        return None

    def _leading(self, request_id: int, epoch: int) -> Leader | None:
        error = self._leader_only_error(epoch)
        if error is not None:
            self._reply_change(request_id, error, "ask the leader")
            return None
        assert isinstance(self.role, Leader)
        return self.role

    def _reply_change(self, request_id: int, error: WireError, message: str | None = None) -> None:
        self._emit(Reply(request_id, VoterChangeResponse(error=error, message=message)))

    def _write_voters(self, role: Leader, voter_set: VoterSet) -> int:
        # A lone voter never had to be heard of: from now on its new peers have as long as after an election.
        role.check_quorum_deadline_ms = self._check_quorum_deadline_ms()
        return self._append(VotersChange(voter_set), record_count=1, voter_set=voter_set)

    # Adding ----------------------------------------

    def _on_add_voter(self, request_id: int, request: AddVoter) -> None:
        role = self._leading(request_id, self.epoch)
        if role is None:
            return
        problem = self._change_error(role)
        if problem is None and request.voter.id in (self.local.id, *self.log.voters.ids):
            problem = errors.DUPLICATE_VOTER, f"{request.voter.id} is a voter already"
        if problem is None and not request.voter.endpoints:
            problem = errors.INVALID_REQUEST, "a voter needs an endpoint"
        if problem is not None:
            self._reply_change(request_id, *problem)
            return
        self._emit(Learn(request.voter.id, request.voter.endpoints))
        if not self._send(request.voter.id, AskSupport()):
            self._reply_change(request_id, errors.REQUEST_TIMED_OUT, f"{request.voter.key} cannot be asked yet")
            return
        deadline_ms = self.now_ms + self.settings.request_timeout_ms
        role.change = VoterChange(request_id, deadline_ms, request.voter, request.waits_for_commit)

    def _on_support_response(self, peer_id: int, response: SupportResponse) -> bool:
        role = self.role
        if not isinstance(role, Leader) or role.change is None or role.change.added is None:
            return True
        added = role.change.added
        if added.id != peer_id:
            return True
        problem = self._support_error(role, added, response)
        if problem is not None:
            self._finish_change(role, *problem)
            return problem[0] is not errors.REQUEST_TIMED_OUT
        voter = Voter(added.key, added.endpoints, response.kraft_version_min, response.kraft_version_max)
        voter_set = self.log.voters.with_added(voter)
        assert voter_set is not None, "no other change was allowed meanwhile"
        role.change.added = None
        role.change.offset = self._write_voters(role, voter_set)
        if not role.change.waits_for_commit:
            self._finish_change(role, errors.NONE)
        return True

    def _support_error(self, role: Leader, added: Voter, response: SupportResponse) -> tuple[WireError, str] | None:
        if response.error is not errors.NONE:
            return errors.REQUEST_TIMED_OUT, f"{added.key} answered {response.error.name}"
        if not response.kraft_version_min <= self.log.kraft_version <= response.kraft_version_max:
            return errors.INVALID_REQUEST, f"{added.key} does not speak kraft.version {self.log.kraft_version}"
        replica = role.replicas.get(added.key)
        is_caught_up = (
            replica is not None
            and replica.last_caught_up_ms >= 0
            and replica.last_fetch_ms > self.now_ms - CAUGHT_UP_MS_MAX
        )
        return None if is_caught_up else (errors.REQUEST_TIMED_OUT, f"{added.key} lags behind")

    # Removing and updating ----------------------------------------

    def _on_remove_voter(self, request_id: int, request: RemoveVoter) -> None:
        role = self._leading(request_id, self.epoch)
        if role is None:
            return
        problem = self._change_error(role)
        voter_set = self.log.voters.with_removed(request.key)
        if problem is None and voter_set is None:
            problem = errors.VOTER_NOT_FOUND, f"{request.key} is not a voter that can be removed"
        if problem is not None or voter_set is None:
            self._reply_change(request_id, *(problem or (errors.VOTER_NOT_FOUND, "")))
            return
        deadline_ms = self.now_ms + self.settings.request_timeout_ms
        role.change = VoterChange(request_id, deadline_ms, offset=self._write_voters(role, voter_set))

    def _on_update_voter(self, request_id: int, request: UpdateVoter) -> None:
        error = self._leader_only_error(request.epoch)
        role = self.role
        if error is None and isinstance(role, Leader):
            error = self._update(role, request.voter)
        self._emit(Reply(request_id, self._signed(UpdateVoterResponse(), error)))

    def _update(self, role: Leader, voter: Voter) -> WireError | None:
        problem = self._change_error(role)
        if problem is not None:
            return problem[0]
        if not voter.endpoints or not voter.kraft_version_min <= self.log.kraft_version <= voter.kraft_version_max:
            return errors.INVALID_REQUEST
        voter_set = self.log.voters.with_updated(voter)
        if voter_set is None:
            return errors.VOTER_NOT_FOUND
        self._write_voters(role, voter_set)
        return None

    # The end of a change ----------------------------------------

    def _finish_change(self, role: Leader, error: WireError, message: str | None = None) -> None:
        assert role.change is not None
        self._reply_change(role.change.request_id, error, message)
        role.change = None

    def _settle_change(self, role: Leader) -> None:
        change = role.change
        assert role.high_watermark is not None
        if change is not None and change.offset is not None and change.offset < role.high_watermark:
            self._finish_change(role, errors.NONE)
        written = self.log.voter_sets.last_offset
        if not self.is_voter and written is not None and written < role.high_watermark:
            role.must_resign = True

    def _expire_change(self, role: Leader) -> None:
        if role.change is not None and self.now_ms >= role.change.deadline_ms:
            self._finish_change(role, errors.REQUEST_TIMED_OUT, "the change of the voters was not committed in time")

    def _abandon_change(self, role: Leader) -> None:
        if role.change is not None:
            self._finish_change(role, errors.NOT_LEADER_OR_FOLLOWER, "the leader lost its leadership")
