"""The Raft machine replicates and commits, one decision at a time: events in, effects out, nothing else."""

from __future__ import annotations

from typing import Any

from machine_bench import VOTERS, Bench, voter

from barnabas.model.ids import NO_BROKER
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import BatchFacts, LogView, OffsetAndEpoch
from barnabas.raft.roles import NEVER_MS, Candidate, Follower, Leader
from barnabas.raft.voters import VoterSet


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


def test_a_snapshot_that_cannot_be_installed_is_not_fetched_again_at_once() -> None:
    bench = Bench()
    bench.follow()
    snapshot = OffsetAndEpoch(50, 4)
    bench.answer(bench.sends()[2], messages.FetchResponse(leader_id=2, epoch=5, snapshot=snapshot))
    piece = messages.FetchSnapshotResponse(
        leader_id=2, epoch=5, snapshot=snapshot, size_bytes=1, data=b"x", data_bytes=1
    )
    bench.answer(bench.sends()[2], piece)
    assert bench.of(events.InstallSnapshot)
    failed_ms = bench.now_ms
    bench.step(events.InstallFailed(snapshot))
    while 2 not in bench.sends():
        bench.timeout()
    assert bench.now_ms - failed_ms >= bench.machine.settings.fetch_timeout_ms


def test_nothing_below_a_snapshot_is_ever_cut() -> None:
    log = LogView()
    log.append(BatchFacts(0, 9, 3))
    log.voter_sets.add(0, VOTERS)
    log.kraft_versions.add(0, 1)
    log.append(BatchFacts(10, 15, 4))
    log.synced_offset = log.end_offset
    log.latest_snapshot = OffsetAndEpoch(10, 3)
    bench = Bench(log=log)
    bench.follow()
    bench.answer(bench.sends()[2], messages.FetchResponse(leader_id=2, epoch=5, diverging=OffsetAndEpoch(8, 3)))
    assert bench.of(events.Alarm)
    assert not bench.of(events.Truncate)
    assert bench.machine.log.end_offset == 16
