"""The Raft machine while the voters change: who counts from when on, and what waits or is taken back."""

from __future__ import annotations

from machine_bench import SETTINGS, VOTERS, Bench, bench_fetch, vote, voter

from barnabas.model import errors
from barnabas.raft import events, messages
from barnabas.raft.log_view import BatchFacts, LogView
from barnabas.raft.roles import Follower, Resigned, Unattached
from barnabas.raft.voters import Endpoint, Voter, VoterSet


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


def test_a_leader_that_has_no_time_for_a_change_is_fetched_from_all_the_same() -> None:
    """Whoever asked others meanwhile could wait for one that hangs, and be missed by the leader."""
    elsewhere = Voter(voter(1).key, (Endpoint("CONTROLLER", "elsewhere", 9093),))
    bench = Bench(VoterSet.of(elsewhere, voter(2), voter(3)))
    bench.follow(2)
    assert isinstance(bench.machine.role, Follower)
    bench.machine.role.update_voter_deadline_ms = 0
    bench.answer(bench_fetch(bench), messages.FetchResponse(leader_id=2, epoch=5))
    assert isinstance(bench.sends()[2].request, messages.UpdateVoter)
    busy = messages.UpdateVoterResponse(error=errors.REQUEST_TIMED_OUT, leader_id=2, epoch=5)
    bench.answer(bench.sends()[2], busy)
    assert isinstance(bench.sends()[2].request, messages.Fetch)
    assert set(bench.sends()) == {2}


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


def removed_before_anyone_heard() -> Bench:
    """A leader of two that has removed itself, and lost its majority before the other voter fetched the change."""
    bench = Bench(VoterSet.of(voter(1), voter(2)))
    bench.elect()
    bench.sync()
    bench.fetch(2, 3, 1)
    bench.step(events.Asked(50, messages.RemoveVoter(voter(1).key)))
    bench.sync()
    while not isinstance(bench.machine.role, Unattached):
        bench.timeout()
    return bench


def test_a_removed_voter_with_the_longest_log_runs_again_until_its_removal_is_committed() -> None:
    bench = removed_before_anyone_heard()
    assert not bench.machine.is_voter
    refused = bench.ask(vote(2, 2, (3, 1), is_pre_vote=True))
    assert not refused.is_granted, "nobody else can be elected: the other voter needs a vote of one who knows more"
    bench.elect()
    assert bench.machine.log.voters.ids == (2,)
    bench.sync()
    assert not bench.of(events.Committed), "it leads, but its own disk does not count"
    bench.fetch(2, 5, 3)
    assert events.Committed(5) in bench.effects
    assert isinstance(bench.machine.role, Resigned)
    bench.step(events.TimerFired(), after_ms=10 * SETTINGS.election_timeout_ms)
    assert isinstance(bench.machine.role, Unattached)
    bench.step(events.TimerFired(), after_ms=10 * SETTINGS.election_timeout_ms)
    assert isinstance(bench.machine.role, Unattached), "what is committed is final: it never runs again"
