"""The view of the log: epochs, cuts, snapshots."""

from __future__ import annotations

from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, History, LogView, OffsetAndEpoch, Verdict


def log(*batches: tuple[int, int, int]) -> LogView:
    view = LogView(latest_snapshot=BOOTSTRAP_SNAPSHOT)
    for epoch, base_offset, last_offset in batches:
        view.append(BatchFacts(base_offset, last_offset, epoch))
    return view


def test_the_end_of_an_epoch_is_where_the_next_one_begins() -> None:
    view = log((1, 0, 4), (3, 5, 9), (3, 10, 11))
    assert view.end_of_epoch(1) == OffsetAndEpoch(5, 1)
    assert view.end_of_epoch(2) == OffsetAndEpoch(5, 1)
    assert view.end_of_epoch(3) == OffsetAndEpoch(12, 3)
    assert view.end_of_epoch(9) == OffsetAndEpoch(12, 3)
    assert view.end_of_epoch(0) == OffsetAndEpoch(0, 0)


def test_where_to_cut_follows_from_the_shared_epoch() -> None:
    view = log((1, 0, 4), (3, 5, 9))
    assert view.truncation_offset(OffsetAndEpoch(7, 3)) == 7
    assert view.truncation_offset(OffsetAndEpoch(30, 3)) == 10
    assert view.truncation_offset(OffsetAndEpoch(30, 2)) == 5
    assert view.truncation_offset(OffsetAndEpoch(3, 1)) == 3
    assert view.truncation_offset(OffsetAndEpoch(0, 0)) == 0


def test_an_empty_replica_is_sent_to_the_snapshot_if_there_is_a_real_one() -> None:
    view = log((1, 0, 4), (3, 5, 9))
    assert view.judge(OffsetAndEpoch(0, 0))[0] is Verdict.VALID
    view.latest_snapshot = OffsetAndEpoch(5, 1)
    assert view.judge(OffsetAndEpoch(0, 0)) == (Verdict.SNAPSHOT, OffsetAndEpoch(5, 1))


def test_below_the_start_there_is_only_the_snapshot() -> None:
    view = log((1, 0, 4), (3, 5, 9))
    view.latest_snapshot = OffsetAndEpoch(7, 3)
    view.start_after(OffsetAndEpoch(7, 3))
    assert view.epochs == [(3, 7)]
    for position in (OffsetAndEpoch(6, 3), OffsetAndEpoch(7, 2), OffsetAndEpoch(8, 1)):
        assert view.judge(position) == (Verdict.SNAPSHOT, OffsetAndEpoch(7, 3))
    assert view.judge(OffsetAndEpoch(7, 3))[0] is Verdict.VALID


def test_an_empty_log_has_the_epoch_of_its_snapshot() -> None:
    view = log((1, 0, 4))
    view.restart_at(OffsetAndEpoch(50, 7), None, 1)
    assert view.end == OffsetAndEpoch(50, 7)
    assert view.judge(OffsetAndEpoch(50, 7))[0] is Verdict.VALID
    view.append(BatchFacts(50, 50, 8))
    assert view.end == OffsetAndEpoch(51, 8)


def test_a_cut_takes_back_epochs_and_syncs() -> None:
    view = log((1, 0, 4), (3, 5, 9))
    view.synced_offset = 8
    view.truncate(5)
    assert (view.end, view.synced_offset, view.generation) == (OffsetAndEpoch(5, 1), 5, 1)


def test_a_history_answers_what_was_in_force() -> None:
    history: History[str] = History()
    history.add(-1, "a")
    history.add(5, "b")
    assert [history.at(offset) for offset in (-2, -1, 4, 5, 9)] == [None, "a", "a", "b", "b"]
    history.forget_before(5)
    assert history.at(4) == "a"
    history.forget_before(6)
    assert history.at(4) is None
    assert history.last == "b"
    history.truncate(5)
    assert history.last is None
