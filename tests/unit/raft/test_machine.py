"""The Raft machine, one decision at a time: events in, effects out, nothing else."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from barnabas.model import errors
from barnabas.model.ids import NO_BROKER, Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, LogView, OffsetAndEpoch
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import NEVER_MS, Candidate, Follower, Leader, Prospective, Resigned, Unattached
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

SETTINGS = RaftSettings()
E = TypeVar("E")


def voter(number: int) -> Voter:
    return Voter(ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", f"host{number}", 9093),))


VOTERS = VoterSet.of(voter(1), voter(2), voter(3))


class Bench:
    """Replica 1 among the voters given, and what it last ordered."""

    def __init__(self, voters: VoterSet = VOTERS, state: QuorumState | None = None, epochs: Any = ()) -> None:
        log = LogView(latest_snapshot=BOOTSTRAP_SNAPSHOT)
        log.voter_sets.add(-1, voters)
        log.kraft_versions.add(-1, 1)
        for epoch, base_offset, last_offset in epochs:
            log.append(BatchFacts(base_offset, last_offset, epoch))
        log.synced_offset = log.end_offset
        self.machine = RaftMachine(
            local=voter(1), settings=SETTINGS, log=log, state=state or QuorumState(), seed=1, bootstrap_ids=()
        )
        self.now_ms = 0
        self.effects: list[events.Effect] = []
        self.step(events.Started())

    def step(self, event: events.Event, after_ms: int = 0) -> list[events.Effect]:
        self.now_ms += after_ms
        self.effects = self.machine.step(event, self.now_ms)
        return self.effects

    def of(self, kind: type[E]) -> list[E]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def ask(self, request: messages.Request) -> Any:
        self.step(events.Asked(99, request))
        (reply,) = [reply for reply in self.of(events.Reply) if reply.request_id == 99]
        return reply.response

    def answer(self, send: events.Send, response: messages.Response | None) -> None:
        self.step(events.Answered(send.peer_id, send.number, response))

    def sends(self) -> dict[int, events.Send]:
        return {send.peer_id: send for send in self.of(events.Send)}

    def sync(self) -> None:
        sync = self.of(events.Sync)[-1]
        self.step(events.LogSynced(sync.end_offset, sync.generation))

    def timeout(self) -> None:
        self.step(events.TimerFired(), after_ms=self.machine.next_deadline_ms - self.now_ms)

    def elect(self) -> None:
        """Win the pre-vote and the vote with the help of replica 2."""
        while not isinstance(self.machine.role, Prospective):
            self.timeout()
        epoch = self.machine.epoch
        self.answer(self.sends()[2], messages.VoteResponse(epoch=epoch, is_granted=True))
        assert isinstance(self.machine.role, Candidate)
        self.answer(self.sends()[2], messages.VoteResponse(epoch=epoch + 1, is_granted=True))
        assert isinstance(self.machine.role, Leader)

    def follow(self, leader_id: int = 2, epoch: int = 5) -> None:
        request = messages.BeginQuorumEpoch(leader_id, epoch, voter(leader_id).endpoints, voter(1).key)
        assert self.ask(request).error is errors.NONE
        assert isinstance(self.machine.role, Follower)

    def fetch(self, number: int, offset: int, epoch: int, wait_ms: int = 0) -> Any:
        key = voter(number).key
        return self.ask(messages.Fetch(key, self.machine.epoch, OffsetAndEpoch(offset, epoch), wait_ms))


def vote(number: int, epoch: int, end: tuple[int, int] = (0, 0), *, is_pre_vote: bool = False) -> messages.Vote:
    return messages.Vote(voter(number).key, voter(1).key, epoch, OffsetAndEpoch(*end), is_pre_vote)


def test_one_voter_leads_in_its_first_step_and_commits_after_the_sync() -> None:
    bench = Bench(VoterSet.of(voter(1)))
    assert isinstance(bench.machine.role, Leader)
    assert bench.effects[0] == events.Persist(QuorumState(1, 1, voter(1).key))
    (append,) = bench.of(events.Append)
    assert isinstance(append.payload, events.LeaderChange)
    assert append.payload.voter_set == VoterSet.of(voter(1))
    assert not bench.of(events.Committed)
    bench.sync()
    assert bench.of(events.Committed) == [events.Committed(3)]
    assert bench.machine.next_deadline_ms == NEVER_MS


def test_the_state_is_the_first_effect_when_a_vote_is_given() -> None:
    bench = Bench()
    assert bench.ask(vote(2, 1)).is_granted
    assert bench.effects[0] == events.Persist(QuorumState(1, NO_BROKER, voter(2).key))


def test_a_vote_is_given_once_per_epoch_but_again_to_the_same_candidate() -> None:
    bench = Bench()
    assert bench.ask(vote(2, 1)).is_granted
    assert bench.ask(vote(2, 1)).is_granted
    assert not bench.ask(vote(3, 1)).is_granted
    assert bench.ask(vote(3, 2)).is_granted


def test_a_candidate_with_a_shorter_log_gets_no_vote() -> None:
    bench = Bench(epochs=[(1, 0, 4), (2, 5, 9)])
    assert not bench.ask(vote(2, 5, (9, 2))).is_granted
    assert not bench.ask(vote(2, 6, (50, 1))).is_granted
    assert bench.ask(vote(2, 7, (10, 2))).is_granted


def test_a_vote_meant_for_another_disk_is_refused() -> None:
    bench = Bench()
    stranger = ReplicaKey(1, Uuid(bytes([9]) * 16))
    response = bench.ask(messages.Vote(voter(2).key, stranger, 1, OffsetAndEpoch(0, 0), False))
    assert (response.error, response.is_granted) == (errors.INVALID_VOTER_KEY, False)


def test_a_pre_vote_moves_no_epoch_and_is_refused_by_who_hears_its_leader() -> None:
    bench = Bench()
    bench.follow()
    assert bench.ask(vote(3, 5, is_pre_vote=True)).is_granted
    bench.answer(
        bench_fetch(bench), messages.FetchResponse(leader_id=2, epoch=5, endpoints=voter(2).endpoints, high_watermark=0)
    )
    response = bench.ask(vote(3, 5, is_pre_vote=True))
    assert (response.is_granted, response.epoch, response.leader_id) == (False, 5, 2)


def bench_fetch(bench: Bench) -> events.Send:
    """The fetch that is under way to replica 2."""
    number = bench.machine._connections[2].number
    assert number is not None
    return events.Send(2, number, messages.AskSupport())


def test_an_election_starts_with_a_pre_vote_and_only_its_win_raises_the_epoch() -> None:
    bench = Bench()
    bench.timeout()
    assert isinstance(bench.machine.role, Prospective)
    assert {send.request.is_pre_vote for send in bench.of(events.Send)} == {True}  # type: ignore[union-attr]
    assert not bench.of(events.Persist)
    bench.answer(bench.sends()[2], messages.VoteResponse(epoch=0, is_granted=True))
    assert isinstance(bench.machine.role, Candidate)
    assert bench.of(events.Persist) == [events.Persist(QuorumState(1, NO_BROKER, voter(1).key))]


def test_a_refused_pre_vote_sends_the_follower_back_to_its_leader() -> None:
    bench = Bench()
    bench.follow()
    while not isinstance(bench.machine.role, Prospective):
        bench.timeout()
    sends = bench.sends()
    refusal = messages.VoteResponse(leader_id=2, epoch=5, endpoints=voter(2).endpoints, is_granted=False)
    bench.answer(sends[2], refusal)
    bench.answer(sends[3], refusal)
    assert isinstance(bench.machine.role, Follower)
    assert bench.machine.leader_id == 2


def test_a_leader_that_was_restarted_never_leads_its_epoch_again() -> None:
    bench = Bench(state=QuorumState(7, 1, voter(1).key), epochs=[(7, 0, 3)])
    assert isinstance(bench.machine.role, Resigned)
    assert not bench.ask(vote(2, 7, (9, 6))).is_granted
    while not isinstance(bench.machine.role, Unattached | Prospective):
        bench.timeout()
    assert bench.machine.epoch == 8


def test_a_log_that_is_newer_than_the_state_file_wins() -> None:
    bench = Bench(state=QuorumState(2, 3, None), epochs=[(4, 0, 3)])
    assert bench.machine.state == QuorumState(4, NO_BROKER, None)


def test_nothing_is_committed_before_a_record_of_the_leaders_own_epoch() -> None:
    bench = Bench(epochs=[(1, 0, 9)], state=QuorumState(1))
    bench.elect()
    bench.sync()
    bench.fetch(2, 10, 1)
    assert not bench.of(events.Committed)
    bench.fetch(2, 13, 2)
    assert bench.of(events.Committed) == [events.Committed(13)]


def test_a_leader_counts_itself_only_after_its_sync() -> None:
    bench = Bench()
    bench.elect()
    bench.fetch(2, 3, 1)
    assert not bench.of(events.Committed)
    bench.step(events.LogSynced(3, 0))
    assert bench.of(events.Committed) == [events.Committed(3)]


def test_a_diverging_fetch_is_told_where_to_cut() -> None:
    bench = Bench(epochs=[(1, 0, 4), (3, 5, 9)], state=QuorumState(3))
    bench.elect()
    assert bench.fetch(2, 8, 2).diverging == OffsetAndEpoch(5, 1)
    assert bench.fetch(2, 20, 3).diverging == OffsetAndEpoch(10, 3)
    assert bench.fetch(2, 5, 1).read_offset == 5


def test_a_fetch_without_news_waits_until_there_is_some() -> None:
    bench = Bench()
    bench.elect()
    bench.step(events.Asked(7, messages.Fetch(voter(2).key, 1, OffsetAndEpoch(3, 1), 500)))
    assert not bench.of(events.Reply)
    bench.step(events.Proposed(1, 2, "payload"))
    (reply,) = bench.of(events.Reply)
    assert reply.request_id == 7
    assert reply.response.read_offset == 3  # type: ignore[union-attr]


def test_a_waiting_fetch_is_answered_when_the_high_watermark_moves() -> None:
    bench = Bench()
    bench.elect()
    bench.sync()
    bench.step(events.Asked(7, messages.Fetch(voter(3).key, 1, OffsetAndEpoch(3, 1), 500, high_watermark=-1)))
    (reply,) = bench.of(events.Reply)
    assert reply.response.high_watermark == 3  # type: ignore[union-attr]


def test_a_leader_without_a_majority_of_fetches_resigns_and_names_successors() -> None:
    bench = Bench()
    bench.elect()
    while not isinstance(bench.machine.role, Resigned):
        bench.timeout()
    assert bench.now_ms <= 1.5 * SETTINGS.fetch_timeout_ms + 2 * SETTINGS.election_timeout_ms
    requests = [send.request for send in bench.of(events.Send)]
    assert all(isinstance(request, messages.EndQuorumEpoch) for request in requests)
    assert bench.of(events.LeaderChanged) == [events.LeaderChanged(NO_BROKER, 1)]
    with pytest.raises(NotLeader):
        bench.step(events.Proposed(1, 1, "late"))


def test_fetches_of_a_majority_keep_a_leader() -> None:
    bench = Bench()
    bench.elect()
    for _ in range(20):
        bench.step(events.TimerFired(), after_ms=500)
        bench.fetch(2, 3, 1)
    assert isinstance(bench.machine.role, Leader)


def test_the_first_successor_runs_at_once() -> None:
    bench = Bench()
    bench.follow()
    successors = (voter(1).key, voter(3).key)
    bench.ask(messages.EndQuorumEpoch(2, 5, voter(2).endpoints, successors))
    assert isinstance(bench.machine.role, Prospective)


def test_a_follower_fetches_again_only_after_its_sync() -> None:
    bench = Bench()
    bench.follow(epoch=5)
    fetch = bench.sends()[2]
    batches = (BatchFacts(0, 2, 5),)
    response = messages.FetchResponse(
        leader_id=2, epoch=5, endpoints=voter(2).endpoints, high_watermark=0, records="bytes", batches=batches
    )
    bench.answer(fetch, response)
    assert bench.of(events.AppendFetched) == [events.AppendFetched(0, 3, "bytes")]
    assert not bench.of(events.Send)
    bench.step(events.LogSynced(3, 0))
    (send,) = bench.of(events.Send)
    assert send.request.log_end == OffsetAndEpoch(3, 5)  # type: ignore[union-attr]


def test_batches_that_do_not_fit_are_not_appended() -> None:
    for batches in ((BatchFacts(1, 2, 5),), (BatchFacts(0, 2, 6),), (BatchFacts(0, 2, 5), BatchFacts(4, 4, 5))):
        bench = Bench()
        bench.follow(epoch=5)
        response = messages.FetchResponse(leader_id=2, epoch=5, records="bytes", batches=batches)
        bench.answer(bench.sends()[2], response)
        assert not bench.of(events.AppendFetched)


def test_a_cut_below_what_is_committed_is_refused_loudly() -> None:
    bench = Bench(epochs=[(1, 0, 9)], state=QuorumState(1))
    bench.follow(epoch=5)
    fetch = bench.sends()[2]
    bench.machine.high_watermark = 10
    bench.answer(fetch, messages.FetchResponse(leader_id=2, epoch=5, diverging=OffsetAndEpoch(4, 1)))
    assert bench.of(events.Alarm)
    assert not bench.of(events.Truncate)


def test_a_second_leader_of_an_epoch_is_not_believed() -> None:
    bench = Bench()
    bench.follow(leader_id=2, epoch=5)
    request = messages.BeginQuorumEpoch(3, 5, voter(3).endpoints, voter(1).key)
    assert bench.ask(request).error is errors.INVALID_REQUEST
    assert bench.machine.leader_id == 2
    assert bench.of(events.Alarm)


def test_an_answer_to_an_old_question_is_not_heard() -> None:
    bench = Bench()
    bench.timeout()
    pre_vote = bench.sends()[2]
    bench.answer(pre_vote, messages.VoteResponse(epoch=0, is_granted=True))
    assert isinstance(bench.machine.role, Candidate)
    bench.answer(pre_vote, messages.VoteResponse(epoch=1, is_granted=True))
    assert isinstance(bench.machine.role, Candidate)


def test_a_download_is_installed_and_the_log_goes_on_after_it() -> None:
    bench = Bench()
    bench.follow(epoch=5)
    snapshot = OffsetAndEpoch(40, 4)
    facts: dict[str, Any] = {"leader_id": 2, "epoch": 5}
    bench.answer(bench.sends()[2], messages.FetchResponse(snapshot=snapshot, **facts))
    assert bench.of(events.BeginSnapshot) == [events.BeginSnapshot(snapshot)]
    for position in (0, 1):
        piece = messages.FetchSnapshotResponse(
            snapshot=snapshot, position=position, size_bytes=2, data=b"x", data_bytes=1, **facts
        )
        bench.answer(bench.sends()[2], piece)
    assert bench.of(events.InstallSnapshot) == [events.InstallSnapshot(snapshot)]
    bench.step(events.TimerFired(), after_ms=60_000)
    assert isinstance(bench.machine.role, Follower), "no election while the log is being replaced"
    bench.step(events.SnapshotInstalled(snapshot, VOTERS, 1))
    assert bench.of(events.Committed) == [events.Committed(40)]
    assert bench.machine.log.end == snapshot


# Changes of the voters ----------


def leading_alone() -> Bench:
    bench = Bench(VoterSet.of(voter(1)))
    bench.sync()
    return bench


def add_second(bench: Bench) -> None:
    bench.fetch(2, 3, 1)
    bench.step(events.Asked(50, messages.AddVoter(voter(2))))
    bench.answer(bench.sends()[2], messages.SupportResponse(kraft_version_max=1))


def test_a_new_voter_counts_from_the_record_on_and_is_acknowledged_by_the_new_majority() -> None:
    bench = leading_alone()
    add_second(bench)
    assert bench.machine.log.voters.ids == (1, 2)
    bench.sync()
    assert not bench.of(events.Committed)
    bench.fetch(2, 4, 1)
    replies = {reply.request_id: reply.response for reply in bench.of(events.Reply)}
    assert replies[50] == messages.VoterChangeResponse()


def test_a_second_change_has_to_wait_for_the_first() -> None:
    bench = leading_alone()
    add_second(bench)
    assert bench.ask(messages.RemoveVoter(voter(2).key)).error is errors.REQUEST_TIMED_OUT
    assert bench.ask(messages.AddVoter(voter(3))).error is errors.REQUEST_TIMED_OUT


def test_a_replica_that_lags_is_not_made_a_voter() -> None:
    bench = leading_alone()
    bench.step(events.Asked(50, messages.AddVoter(voter(2))))
    bench.answer(bench.sends()[2], messages.SupportResponse(kraft_version_max=1))
    (reply,) = bench.of(events.Reply)
    assert reply.response.error is errors.REQUEST_TIMED_OUT
    assert bench.ask(messages.AddVoter(voter(1))).error is errors.DUPLICATE_VOTER
    assert bench.ask(messages.RemoveVoter(voter(1).key)).error is errors.VOTER_NOT_FOUND


def test_a_leader_that_removes_itself_commits_without_its_own_vote_and_resigns() -> None:
    bench = Bench()
    bench.elect()
    bench.sync()
    bench.fetch(2, 3, 1)
    bench.fetch(3, 3, 1)
    bench.step(events.Asked(50, messages.RemoveVoter(voter(1).key)))
    bench.sync()
    bench.fetch(2, 4, 1)
    assert not bench.of(events.Committed)
    bench.fetch(3, 4, 1)
    assert events.Committed(4) in bench.effects
    assert isinstance(bench.machine.role, Resigned)


def test_a_truncated_change_of_the_voters_is_taken_back() -> None:
    log = LogView()
    log.voter_sets.add(-1, VOTERS)
    log.append(BatchFacts(0, 4, 1))
    log.append(BatchFacts(5, 5, 1, ((5, VoterSet.of(voter(1), voter(2))),)))
    assert log.voters.ids == (1, 2)
    log.truncate(5)
    assert log.voters == VOTERS


def test_a_follower_whose_leader_is_gone_runs_at_once() -> None:
    bench = Bench()
    bench.follow()
    fetch = bench.sends()[2]
    bench.answer(fetch, messages.FetchResponse(leader_id=2, epoch=5, high_watermark=0))
    refused = bench.sends()[2]
    assert not bench.ask(vote(3, 5, is_pre_vote=True)).is_granted  # it hears its leader
    bench.step(events.Answered(2, refused.number, None, is_refused=True))
    assert bench.ask(vote(3, 5, is_pre_vote=True)).is_granted
    start_ms = bench.now_ms
    while not isinstance(bench.machine.role, Prospective):
        bench.timeout()
    assert bench.now_ms - start_ms <= bench.machine.settings.election_timeout_ms // 10


def test_a_follower_whose_leader_merely_does_not_answer_waits() -> None:
    bench = Bench()
    bench.follow()
    bench.answer(bench.sends()[2], messages.FetchResponse(leader_id=2, epoch=5, high_watermark=0))
    start_ms = bench.now_ms
    while not isinstance(bench.machine.role, Prospective):
        sends = bench.sends()
        if 2 in sends:
            bench.answer(sends[2], None)
        else:
            bench.timeout()
    assert bench.now_ms - start_ms >= bench.machine.settings.fetch_timeout_ms - 1


def test_only_a_leader_has_something_to_hand_over_before_it_stops() -> None:
    bench = Bench()
    assert bench.machine.may_stop  # without a leader, and none itself
    bench.elect()
    assert not bench.machine.may_stop
    bench.step(events.ShutdownAsked())
    assert not bench.machine.may_stop
    sends = bench.sends()
    epoch = bench.machine.epoch
    bench.answer(sends[2], messages.EndQuorumEpochResponse(leader_id=1, epoch=epoch))
    assert not bench.machine.may_stop
    bench.step(events.Answered(3, sends[3].number, None, is_refused=True))  # it has stopped before us
    assert bench.machine.may_stop
