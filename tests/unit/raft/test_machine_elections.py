"""The Raft machine gives votes and asks for them, one decision at a time."""

from __future__ import annotations

import pytest
from machine_bench import SETTINGS, Bench, bench_fetch, vote, voter

from barnabas.model import errors
from barnabas.model.ids import NO_BROKER, Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.leading import NotLeader
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from barnabas.raft.voters import ReplicaKey


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


def test_a_second_leader_of_an_epoch_is_not_believed() -> None:
    bench = Bench()
    bench.follow(leader_id=2, epoch=5)
    request = messages.BeginQuorumEpoch(3, 5, voter(3).endpoints, voter(1).key)
    assert bench.ask(request).error is errors.INVALID_REQUEST
    assert bench.machine.leader_id == 2
    assert bench.of(events.Alarm)


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


def test_who_was_told_that_its_leader_ends_wants_an_election() -> None:
    bench = Bench()
    bench.follow()
    bench.answer(bench.sends()[2], messages.FetchResponse(leader_id=2, epoch=5, high_watermark=0))
    assert not bench.ask(vote(3, 5, is_pre_vote=True)).is_granted
    bench.ask(messages.EndQuorumEpoch(2, 5, voter(2).endpoints, (voter(3).key, voter(1).key)))
    assert isinstance(bench.machine.role, Follower)  # it waits for the better placed one
    assert bench.ask(vote(3, 5, is_pre_vote=True)).is_granted
