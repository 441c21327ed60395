"""What a leader does: append, serve fetches, move the high watermark, watch its majority, resign.

A fetch is an acknowledgement: the offset it asks for is durable on the replica that asks. The leader counts itself only
up to what its own disk has synced, and commits nothing before a record of its own epoch is on a majority, so that no
later leader can lack what was committed (Raft 5.4.2). Changes of the voter set are in ``reconfiguration.py``.
"""

from __future__ import annotations

from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.raft.core import CHECK_QUORUM_FACTOR
from barnabas.raft.elections import Elections
from barnabas.raft.events import Append, LeaderChange, LogSynced, Proposed, Reply, ResignAsked
from barnabas.raft.log_view import BatchFacts, OffsetAndEpoch, Verdict
from barnabas.raft.messages import (
    BeginQuorumEpoch,
    BeginQuorumEpochResponse,
    EndQuorumEpoch,
    EndQuorumEpochResponse,
    Fetch,
    FetchResponse,
    FetchSnapshot,
    FetchSnapshotResponse,
)
from barnabas.raft.quorum import majority_offset
from barnabas.raft.roles import Candidate, Leader, PendingFetch, Replica, Resigned, Role
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, ReplicaKey, VoterSet

PENDING_FETCHES_MAX: Final = 1000  # beyond it, a fetch with nothing to bring is answered empty at once
OBSERVERS_MAX: Final = 1000
OBSERVER_SESSION_MS: Final = 300_000  # an observer that has not fetched for so long is forgotten


class NotLeader(ApiError):
    """Records were proposed to a replica that does not lead in that epoch."""

    def __init__(self, message: str) -> None:
        super().__init__(errors.NOT_LEADER_OR_FOLLOWER, message)


class Leading(Elections):
    # Becoming and ceasing ----------------------------------------

    def _become_leader(self, role: Candidate) -> None:
        voters = self.log.voters
        granting = tuple(key for key in voters.keys if key.id in role.election.granted)
        self.state = self.state._replace(leader_id=self.local.id)
        self._become(Leader(self.log.end_offset, self._check_quorum_deadline_ms(), self.now_ms))
        # A record of this epoch must be committed before anything of earlier ones counts, so there is one at once. The
        # voters go with it if the log never held them (they come from the bootstrap checkpoint) or ours have moved.
        voter_set = kraft_version = None
        if self.log.kraft_version >= KRAFT_VERSION_RECONFIGURABLE:
            is_unwritten = self.log.voter_sets.last_offset == -1
            if is_unwritten or voters.needs_update(self.local):
                voter_set = voters.with_updated(self.local)
                kraft_version = self.log.kraft_version
        change = LeaderChange(self.local.id, voters.keys, granting, kraft_version, voter_set)
        self._append(change, record_count=3 if voter_set is not None else 1, voter_set=voter_set)

    def _leave(self, role: Role) -> None:
        if isinstance(role, Leader):
            for pending in role.pending_fetches:
                self._reply_not_leader(pending.request_id)
            self._abandon_change(role)
        super()._leave(role)

    def _abandon_change(self, role: Leader) -> None:
        """Overridden by ``reconfiguration.py``."""

    def _reply_not_leader(self, request_id: int) -> None:
        self._emit(Reply(request_id, self._signed(FetchResponse(), errors.NOT_LEADER_OR_FOLLOWER)))

    def _check_quorum_deadline_ms(self) -> int:
        return self.now_ms + int(self.settings.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    def _on_resign_asked(self, event: ResignAsked) -> None:
        if isinstance(self.role, Leader) and event.epoch == self.epoch:
            self.role.must_resign = True

    def _poll_leader(self, role: Leader) -> None:
        if self._has_lost_majority(role) or role.must_resign or self.is_shutting_down:
            followers = sorted(
                (voter for voter in self.log.voters.keys if voter.id != self.local.id),
                key=lambda key: -self._replica(role, key).end_offset,
            )
            self._become_resigned(tuple(key.id for key in followers))
            return
        self._begin_epoch(role)
        self._complete_fetches(role)
        self._expire_change(role)

    def _has_lost_majority(self, role: Leader) -> bool:
        return self.now_ms >= role.check_quorum_deadline_ms and not self.is_only_voter

    def _expire_change(self, role: Leader) -> None:
        """Overridden by ``reconfiguration.py``."""

    def _begin_epoch(self, role: Leader) -> None:
        """Tell every voter that does not fetch who leads; it may not know."""
        if self.now_ms < role.begin_epoch_deadline_ms:
            return
        period_ms = self.settings.fetch_timeout_ms // 2
        for voter in self.log.voters.voters:
            replica = role.replicas.get(voter.key)
            is_silent = replica is None or replica.last_fetch_ms < self.now_ms - period_ms
            if voter.id != self.local.id and is_silent:
                self._send(voter.id, BeginQuorumEpoch(self.local.id, self.epoch, self.local.endpoints, voter.key))
        role.begin_epoch_deadline_ms = self.now_ms + period_ms

    def _on_begin_quorum_epoch_response(self, peer_id: int, response: BeginQuorumEpochResponse) -> bool:
        handled = self._observe_response(response)
        return True if handled is None else handled

    def _poll_resigned(self, role: Resigned) -> None:
        if self.is_only_voter and self._may_run():
            self._become_prospective()
        elif self.now_ms >= role.election_deadline_ms and not self.is_shutting_down:
            # In the next epoch, since this one had its leader: us.
            self._become_unattached(self.epoch + 1)
        else:
            for voter_id in sorted(role.unacknowledged):
                request = EndQuorumEpoch(self.local.id, self.epoch, self.local.endpoints, role.successors)
                self._send(voter_id, request)

    def _on_end_quorum_epoch_response(self, peer_id: int, response: EndQuorumEpochResponse) -> bool:
        handled = self._observe_response(response)
        if handled is None and isinstance(self.role, Resigned):
            self.role.unacknowledged.discard(peer_id)
        return True if handled is None else handled

    # The log ----------------------------------------

    def _on_proposed(self, event: Proposed) -> None:
        if not isinstance(self.role, Leader) or event.epoch != self.epoch:
            raise NotLeader(f"replica {self.local.id} does not lead epoch {event.epoch}; the epoch is {self.epoch}")
        self._append(event.payload, record_count=event.record_count)

    def _append(self, payload: object, *, record_count: int, voter_set: VoterSet | None = None) -> int:
        """Order one batch into the log; answers its last offset."""
        assert record_count > 0
        base_offset = self.log.end_offset
        last_offset = base_offset + record_count - 1
        # The Voters record is the last of its batch.
        voters = ((last_offset, voter_set),) if voter_set is not None else ()
        is_first = isinstance(payload, LeaderChange)
        kraft_version = self.log.kraft_version if is_first and voter_set is not None else None
        self.log.append(BatchFacts(base_offset, last_offset, self.epoch, voters, kraft_version))
        self._emit(Append(base_offset, self.epoch, record_count, payload))
        self._sync()
        return last_offset

    def _on_log_synced(self, event: LogSynced) -> None:
        if event.generation != self.log.generation:
            return
        self.log.synced_offset = max(self.log.synced_offset, event.end_offset)
        if isinstance(self.role, Leader):
            self._advance_high_watermark(self.role)

    def _replica(self, role: Leader, key: ReplicaKey) -> Replica:
        return role.replicas.get(key) or Replica()

    def _acknowledged_offset(self, role: Leader, key: ReplicaKey) -> int:
        return self.log.synced_offset if key.id == self.local.id else self._replica(role, key).end_offset

    def _advance_high_watermark(self, role: Leader) -> None:
        offset = majority_offset(self._acknowledged_offset(role, key) for key in self.log.voters.keys)
        if not self._may_commit(role, offset):
            return
        # With another voter set the majority may stand further back; what is committed stays committed.
        if role.high_watermark is None or offset > role.high_watermark:
            role.high_watermark = offset
            self._commit(offset)
            self._settle_change(role)

    def _may_commit(self, role: Leader, offset: int) -> bool:
        return offset > role.epoch_start_offset

    def _settle_change(self, role: Leader) -> None:
        """Overridden by ``reconfiguration.py``."""

    # Serving ----------------------------------------

    def _on_fetch(self, request_id: int, request: Fetch) -> None:
        end = request.log_end
        if request.wait_ms < 0 or end.offset < 0 or end.epoch < 0 or end.epoch > request.epoch:
            self._emit(Reply(request_id, self._signed(FetchResponse(), errors.INVALID_REQUEST)))
            return
        error = self._leader_only_error(request.epoch)
        role = self.role
        if error is not None or not isinstance(role, Leader):
            self._emit(Reply(request_id, self._signed(FetchResponse(), error)))
            return
        if request.replica.id == self.local.id:
            self._emit(Reply(request_id, self._signed(FetchResponse(), errors.INVALID_REQUEST)))
            return
        self._note_contact(role, request.replica)
        verdict, position = self.log.judge(end)
        if verdict is Verdict.DIVERGING:
            self._reply_fetch(role, request_id, diverging=position)
        elif verdict is Verdict.SNAPSHOT:
            self._reply_fetch(role, request_id, snapshot=position)
        else:
            self._note_fetch(role, request.replica, end.offset)
            self._serve_or_wait(role, request_id, request)

    def _serve_or_wait(self, role: Leader, request_id: int, request: Fetch) -> None:
        if self._has_news(role, request) or request.wait_ms == 0:
            self._serve(role, request_id, request)
            return
        if request.replica.id >= 0:
            # A replica fetches once at a time: its previous fetch was given up.
            for pending in [waiting for waiting in role.pending_fetches if waiting.request.replica == request.replica]:
                role.pending_fetches.remove(pending)
                self._serve(role, pending.request_id, pending.request)
        if len(role.pending_fetches) >= PENDING_FETCHES_MAX:
            self._serve(role, request_id, request)
            return
        role.pending_fetches.append(PendingFetch(request_id, request, self.now_ms + request.wait_ms))

    def _has_news(self, role: Leader, request: Fetch) -> bool:
        high_watermark = -1 if role.high_watermark is None else role.high_watermark
        return request.log_end.offset < self.log.end_offset or request.high_watermark < high_watermark

    def _serve(self, role: Leader, request_id: int, request: Fetch) -> None:
        offset = request.log_end.offset
        self._reply_fetch(role, request_id, read_offset=offset if offset < self.log.end_offset else -1)

    def _reply_fetch(
        self,
        role: Leader,
        request_id: int,
        *,
        read_offset: int = -1,
        diverging: OffsetAndEpoch | None = None,
        snapshot: OffsetAndEpoch | None = None,
    ) -> None:
        response = FetchResponse(
            leader_id=self.local.id,
            epoch=self.epoch,
            endpoints=self.local.endpoints,
            high_watermark=-1 if role.high_watermark is None else role.high_watermark,
            log_start_offset=self.log.start_offset,
            diverging=diverging,
            snapshot=snapshot,
            read_offset=read_offset,
        )
        self._emit(Reply(request_id, response))

    def _complete_fetches(self, role: Leader) -> None:
        if not role.pending_fetches:
            return
        still = []
        for pending in role.pending_fetches:
            if self._has_news(role, pending.request) or self.now_ms >= pending.deadline_ms:
                self._serve(role, pending.request_id, pending.request)
            else:
                still.append(pending)
        role.pending_fetches = still

    def _note_fetch(self, role: Leader, sender: ReplicaKey, offset: int) -> None:
        if sender.id < 0:
            return  # a consumer
        key = self._key_of(sender)
        replica = role.replicas.get(key)
        if replica is None:
            self._forget_observers(role)
            replica = role.replicas[key] = Replica()
        replica.fetched(offset, leader_end_offset=self.log.end_offset, now_ms=self.now_ms)
        if self.log.voters.is_voter(key):
            self._advance_high_watermark(role)

    def _key_of(self, sender: ReplicaKey) -> ReplicaKey:
        """A voter is entered under the key that the voter set has for it."""
        voter = self.log.voters.voter_of(sender)
        return voter.key if voter is not None else sender

    def _forget_observers(self, role: Leader) -> None:
        observers = [key for key in role.replicas if not self.log.voters.is_voter(key)]
        for key in observers:
            if self.now_ms - role.replicas[key].last_fetch_ms >= OBSERVER_SESSION_MS:
                del role.replicas[key]
        if len(observers) >= OBSERVERS_MAX:
            oldest = min(observers, key=lambda key: self._replica(role, key).last_fetch_ms)
            role.replicas.pop(oldest, None)

    def _note_contact(self, role: Leader, sender: ReplicaKey) -> None:
        """A voter that fetches still takes us for its leader; a majority of them lets us go on."""
        if not self.log.voters.is_voter(sender):
            return
        role.fetched_voter_ids.add(sender.id)
        needed = len(self.log.voters) // 2 + (0 if self.is_voter else 1)
        if len(role.fetched_voter_ids) >= needed:
            role.fetched_voter_ids.clear()
            role.check_quorum_deadline_ms = self._check_quorum_deadline_ms()

    def _on_fetch_snapshot(self, request_id: int, request: FetchSnapshot) -> None:
        error = self._leader_only_error(request.epoch)
        if error is None and isinstance(self.role, Leader):
            self._note_contact(self.role, request.replica)
        # Whether the file is there, and what it holds at the position, is for the driver to say.
        response = FetchSnapshotResponse(snapshot=request.snapshot, position=request.position)
        self._emit(Reply(request_id, self._signed(response, error)))
