"""What a follower does: fetch, append what comes, cut what diverges, download a snapshot when far behind.

A fetch is sent only when everything before it is durable, since the leader takes it as an acknowledgement. Observers
follow in the same way; their fetches acknowledge nothing, but help them to find the leader.
"""

from __future__ import annotations

from typing import Final

from barnabas.model import errors
from barnabas.raft.elections import Elections
from barnabas.raft.events import (
    Alarm,
    AppendFetched,
    AppendSnapshot,
    BeginSnapshot,
    InstallFailed,
    InstallSnapshot,
    Reply,
    SnapshotInstalled,
)
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, OffsetAndEpoch
from barnabas.raft.messages import (
    AddVoter,
    EndQuorumEpoch,
    EndQuorumEpochResponse,
    Fetch,
    FetchResponse,
    FetchSnapshot,
    FetchSnapshotResponse,
    RemoveVoter,
    UpdateVoter,
    UpdateVoterResponse,
    VoterChangeResponse,
)
from barnabas.raft.roles import Download, Follower, Resigned
from barnabas.raft.voters import KRAFT_VERSION_RECONFIGURABLE, ReplicaKey

HURRY_DIVISOR: Final = 10  # of an election timeout: within this time voters that lost their leader run, not all at once


class Following(Elections):
    # Asking ----------------------------------------

    def _poll_follower(self, role: Follower) -> None:
        if self.now_ms >= role.fetch_deadline_ms and self._may_run():
            self._become_prospective()
            return
        if self.installing is not None or not self.log.is_synced or self._is_waiting():
            return
        if self.now_ms >= role.update_voter_deadline_ms and self._ask_for_voter_change():
            role.update_voter_deadline_ms = self._next_voter_change_ms()
            return
        is_leader_silent = self.now_ms >= role.fetch_deadline_ms
        if is_leader_silent or not self._connection(self.leader_id).is_ready(self.now_ms):
            # Perhaps another knows of a new leader.
            self._fetch_from_anyone()
        elif role.download is not None:
            download = role.download
            request = FetchSnapshot(self.local.key, self.epoch, download.snapshot, download.position)
            self._send(self.leader_id, request)
        else:
            self._send(self.leader_id, self._fetch())

    def _is_waiting(self) -> bool:
        return any(connection.is_waiting(self.now_ms) for connection in self._connections.values())

    def _fetch(self) -> Fetch:
        return Fetch(
            self.local.key, self.epoch, self.log.end, self.settings.fetch_wait_ms_max, max(-1, self.high_watermark)
        )

    def _fetch_from_anyone(self) -> None:
        if self.installing is not None or not self.log.is_synced or self._is_waiting():
            return
        peers = [voter_id for voter_id in self.log.voters.ids if voter_id != self.local.id]
        if isinstance(self.role, Follower) and self.leader_id not in peers:
            peers.append(self.leader_id)  # a voter that our log does not know yet, and perhaps nobody else has news
        peers += self._bootstrap_ids
        ready = [peer_id for peer_id in peers if self._connection(peer_id).is_ready(self.now_ms)]
        if ready:
            self._send(ready[self._below(len(ready))], self._fetch())

    def _ask_for_voter_change(self) -> bool:
        """A voter whose endpoints have changed says so; an observer that wants to be a voter asks (KIP-853)."""
        if self.log.kraft_version < KRAFT_VERSION_RECONFIGURABLE:
            return False
        voters = self.log.voters
        if voters.needs_update(self.local):
            return self._send(self.leader_id, UpdateVoter(self.epoch, self.local))
        if self.is_voter or not self.settings.auto_join_enable:
            return False
        predecessor = voters.get(self.local.id)
        if predecessor is not None:
            # The same node with another disk: that one must go before this one can come.
            return self._send(self.leader_id, RemoveVoter(predecessor.key))
        return self._send(self.leader_id, AddVoter(self.local, waits_for_commit=False))

    def _on_voter_change_response(self, peer_id: int, response: VoterChangeResponse) -> bool:
        """Whatever it says, the leader is well, and is fetched from; the change is asked for again when it is due."""
        return True

    def _on_update_voter_response(self, peer_id: int, response: UpdateVoterResponse) -> bool:
        """The same, unless somebody else leads by now."""
        return self._observe_response(response) is not False or response.error is errors.REQUEST_TIMED_OUT

    def _on_refused(self, peer_id: int) -> None:
        """Nothing listens where the leader was. Its process is gone, so there is nothing to wait for; should we be
        mistaken, the others, who hear it, refuse us their pre-votes."""
        role = self.role
        if isinstance(role, Follower) and peer_id == self.leader_id:
            role.has_fetched = False
            hurry_ms = self._below(self.settings.election_timeout_ms // HURRY_DIVISOR)
            role.fetch_deadline_ms = min(role.fetch_deadline_ms, self.now_ms + hurry_ms)
        elif isinstance(role, Resigned) and self.is_shutting_down:
            role.unacknowledged.discard(peer_id)  # it has gone before us

    # Being told ----------------------------------------

    def _on_end_quorum_epoch(self, request_id: int, request: EndQuorumEpoch) -> None:
        error = self._voter_only_error(request.leader_id, request.epoch)
        if error is None and not self._observe(request.leader_id, request.epoch, request.endpoints):
            error = errors.INVALID_REQUEST
        role = self.role
        if error is None and isinstance(role, Follower) and self.leader_id == request.leader_id:
            role.has_fetched = False  # there is nobody to hear any more, so whoever runs has our pre-vote
            role.fetch_deadline_ms = self.now_ms + self._succession_delay_ms(request.successors)
        self._emit(Reply(request_id, self._signed(EndQuorumEpochResponse(), error)))

    def _succession_delay_ms(self, successors: tuple[ReplicaKey, ...]) -> int:
        """The replica with the longest log runs at once; each next one waits twice as long."""
        limit_ms = self.settings.election_backoff_max_ms
        if self.local.key not in successors:
            return limit_ms
        position = successors.index(self.local.key)
        if position == 0:
            return 0
        return min(limit_ms, (limit_ms >> (len(successors) - 1)) << (position - 1))

    def _on_fetch_response(self, peer_id: int, response: FetchResponse) -> bool:
        handled = self._observe_response(response)
        if handled is not None:
            return handled
        role = self.role
        if not isinstance(role, Follower) or peer_id not in (self.leader_id, *self._bootstrap_ids):
            return False
        if response.diverging is not None:
            if not self._cut(response.diverging):
                return False
        elif response.snapshot is not None:
            self._begin_download(role, response.snapshot)
        elif not self._take(response):
            return False
        role.has_fetched = True
        role.fetch_deadline_ms = self.now_ms + self.settings.fetch_timeout_ms
        return True

    def _cut(self, diverging: OffsetAndEpoch) -> bool:
        end_offset = self.log.truncation_offset(diverging)
        if end_offset < self.high_watermark:
            self._emit(
                Alarm(
                    f"leader {self.leader_id} asks for a cut at {end_offset}, below the committed {self.high_watermark}"
                )
            )
            return False
        self._truncate(end_offset)
        return True

    def _take(self, response: FetchResponse) -> bool:
        batches = response.batches
        if batches:
            if not self._is_continuation(batches):
                return False
            for batch in batches:
                self.log.append(batch)
            self._emit(AppendFetched(batches[0].base_offset, self.log.end_offset, response.records))
            self._sync()
        if response.high_watermark >= 0:
            self._commit(min(response.high_watermark, self.log.end_offset))
        return True

    def _is_continuation(self, batches: tuple[BatchFacts, ...]) -> bool:
        """They go on where the log ends, without gaps, with epochs that do not fall and are not from the future."""
        next_offset, epoch = self.log.end_offset, self.log.last_epoch
        for batch in batches:
            if batch.base_offset != next_offset or not epoch <= batch.epoch <= self.epoch:
                return False
            next_offset, epoch = batch.last_offset + 1, batch.epoch
        return True

    # Snapshots ----------------------------------------

    def _begin_download(self, role: Follower, snapshot: OffsetAndEpoch) -> None:
        if snapshot.offset < max(self.high_watermark, 0) or snapshot.epoch < 0 or snapshot == BOOTSTRAP_SNAPSHOT:
            return  # it would bring nothing; fetch again
        role.download = Download(snapshot)
        self._emit(BeginSnapshot(snapshot))

    def _on_fetch_snapshot_response(self, peer_id: int, response: FetchSnapshotResponse) -> bool:
        role = self.role
        if response.error in (errors.SNAPSHOT_NOT_FOUND, errors.POSITION_OUT_OF_RANGE) and isinstance(role, Follower):
            # The leader has a newer one by now: ask again from the start.
            role.download = None
            role.fetch_deadline_ms = self.now_ms + self.settings.fetch_timeout_ms
            return True
        handled = self._observe_response(response)
        if handled is not None:
            return handled
        role = self.role
        if not isinstance(role, Follower) or role.download is None:
            return False
        download = role.download
        if response.snapshot != download.snapshot or response.position != download.position:
            role.download = None
            return False
        self._emit(AppendSnapshot(response.data))
        download.position += response.data_bytes
        if download.position >= response.size_bytes:
            role.download = None
            self.installing = download.snapshot
            self._emit(InstallSnapshot(download.snapshot))
        role.has_fetched = True
        role.fetch_deadline_ms = self.now_ms + self.settings.fetch_timeout_ms
        return True

    def _on_install_failed(self, event: InstallFailed) -> None:
        assert self.installing == event.snapshot
        self.installing = None
        # The leader's file may be broken for good: all of it again and again would help nobody.
        for peer_id in (self.leader_id, *self._bootstrap_ids):
            self._connection(peer_id).backoff_end_ms = self.now_ms + self.settings.fetch_timeout_ms

    def _on_snapshot_installed(self, event: SnapshotInstalled) -> None:
        assert self.installing == event.snapshot
        self.installing = None
        self.log.restart_at(event.snapshot, event.voters, event.kraft_version)
        self._commit(event.snapshot.offset)
        if isinstance(self.role, Follower):
            self.role.fetch_deadline_ms = self.now_ms + self.settings.fetch_timeout_ms
