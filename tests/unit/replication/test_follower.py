"""A follower's decisions: sessions that tell only what has changed, and where a log that has diverged is cut."""

from __future__ import annotations

import pytest

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import Uuid
from barnabas.replication.follower import (
    Append,
    CutTo,
    Diverged,
    GoOn,
    LeaderSession,
    Limits,
    Locate,
    Park,
    Pause,
    StartOver,
    key_of,
    react,
    relocate,
    truncation_offset,
)
from barnabas.storage.epochs import LeaderEpochs
from barnabas.wire.fetch_session import Wanted
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

TOPIC = Uuid(bytes(range(16)))
LIMITS = Limits(1000, 1, 500)


def asked(offset: int = 0) -> Wanted:
    return Wanted(offset, 4, 100, 3, 0)


def told(request: FetchRequest) -> list[tuple[int, int]]:
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


class Session(LeaderSession):
    def ask(self, **offsets: int) -> FetchRequest:
        """Want just these, and send a request."""
        wanted = {key_of(TOPIC, int(name[1:])): asked(offset) for name, offset in offsets.items()}
        for key in set(self._wanted) - set(wanted):
            self.unwant(key)
        for key, each in wanted.items():
            self.want(key, each)
        return self.request(LIMITS, broker_epoch=9).request


@pytest.fixture
def session() -> Session:
    return Session(broker_id=2)


def test_a_session_tells_all_and_then_only_what_has_changed(session: Session) -> None:
    first = session.ask(p0=5, p1=6)
    assert (first.session_id, first.session_epoch, told(first)) == (0, 0, [(0, 5), (1, 6)])
    assert first.max_wait_ms == 0, "it opens the session at once"
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (2, 9)
    assert session.answered(FetchResponse(session_id=77)) is None
    second = session.ask(p0=5, p1=7, p2=0)
    assert (second.session_id, second.session_epoch, told(second)) == (77, 1, [(1, 7), (2, 0)])
    assert second.max_wait_ms == LIMITS.wait_ms
    session.answered(FetchResponse(session_id=77))
    third = session.ask(p1=7, p2=0)
    assert (third.session_epoch, told(third), forgotten(third)) == (2, [], [0])


def test_a_request_may_follow_before_the_last_one_is_answered(session: Session) -> None:
    session.ask(p0=5)
    was_open = session.is_open
    session.answered(FetchResponse(session_id=77))
    assert (was_open, session.is_open) == (False, True)
    assert session.ask(p0=5).session_epoch == 1
    assert session.ask(p0=5, p1=0).session_epoch == 2
    assert session.answered(FetchResponse(session_id=77)) is None
    assert session.answered(FetchResponse(session_id=77)) is None
    assert session.ask(p0=5, p1=0).session_epoch == 3


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(errors.FETCH_SESSION_ID_NOT_FOUND, 0), (errors.INVALID_FETCH_SESSION_EPOCH, 77)],
)
def test_a_session_that_is_refused_begins_anew(session: Session, error: WireError, session_id: int) -> None:
    session.ask(p0=5)
    session.answered(FetchResponse(session_id=77))
    session.ask(p0=5)
    assert session.answered(FetchResponse(error_code=error.code)) is error
    again = session.ask(p0=5)
    assert (again.session_id, again.session_epoch, told(again)) == (session_id, 0, [(0, 5)])


def test_after_a_lost_answer_everything_is_told_again(session: Session) -> None:
    session.ask(p0=5)
    session.answered(FetchResponse(session_id=77))
    session.ask(p0=5)
    session.failed()
    again = session.ask(p0=5)
    assert (again.session_id, again.session_epoch, told(again)) == (77, 0, [(0, 5)])


def test_a_leader_without_room_for_sessions_may_let_us_wait(session: Session) -> None:
    session.ask(p0=5)
    session.answered(FetchResponse(session_id=0))
    again = session.ask(p0=5)
    assert (again.session_epoch, told(again), again.max_wait_ms) == (0, [(0, 5)], LIMITS.wait_ms)


# --- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.OFFSET_OUT_OF_RANGE, Locate),
        (errors.FENCED_LEADER_EPOCH, Park),
        (errors.UNKNOWN_LEADER_EPOCH, Pause),
        (errors.NOT_LEADER_OR_FOLLOWER, Pause),
        (errors.UNKNOWN_TOPIC_ID, Pause),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, Pause),
        (errors.INCONSISTENT_TOPIC_ID, Pause),
        (errors.KAFKA_STORAGE_ERROR, Pause),
        (errors.UNKNOWN_SERVER_ERROR, Pause),
    ],
)
def test_what_an_error_means(error: WireError, kind: type) -> None:
    assert isinstance(react(FetchResponse.PartitionData(error_code=error.code)), kind)


def test_records_and_divergence_are_told_apart() -> None:
    row = FetchResponse.PartitionData(high_watermark=5, log_start_offset=2, records=b"abc")
    assert react(row) == Append(b"abc", 5, 2)
    row.diverging_epoch = FetchResponse.EpochEndOffset(epoch=3, end_offset=7)
    assert react(row) == Diverged(3, 7)


def history(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("entries", "end_offset", "diverged", "offset"),
    [
        # Same epoch, the leader's is shorter: as when a leader died with a tail that nobody had fetched.
        ([(1, 0)], 10, Diverged(1, 7), 7),
        # Ours is shorter than what the leader has of that epoch: cut ours at its own end.
        ([(1, 0), (2, 5)], 10, Diverged(1, 7), 5),
        # The leader's epoch is unknown here: go back to the end of the last epoch before it, and ask again.
        ([(1, 0), (4, 5)], 10, Diverged(3, 8), 5),
        # The leader's history begins after ours in that epoch.
        ([(1, 0), (3, 5), (4, 8)], 10, Diverged(3, 6), 6),
        # We know no epoch so old: its first known start is as far as we can go back.
        ([(5, 3)], 10, Diverged(2, 9), 3),
        # We know nothing of epochs.
        ([], 10, Diverged(2, 4), 4),
        ([(1, 0)], 10, Diverged(-1, 4), 4),
        # Never beyond our own end.
        ([(1, 0)], 3, Diverged(1, 7), 3),
    ],
)
def test_where_a_log_is_cut(entries: list[tuple[int, int]], end_offset: int, diverged: Diverged, offset: int) -> None:
    assert truncation_offset(history(*entries), end_offset, diverged) == offset


@pytest.mark.parametrize(
    ("end_offset", "leader_start", "leader_end", "step"),
    [
        (10, 0, 7, CutTo(7)),  # an unclean election: the leader has less than we do
        (10, 12, 20, StartOver(12)),  # what we lack is gone
        (10, 5, 20, GoOn(10)),
        (10, 10, 10, GoOn(10)),
        (0, 0, 0, GoOn(0)),
    ],
)
def test_where_a_follower_goes_on_that_was_out_of_range(
    end_offset: int, leader_start: int, leader_end: int, step: StartOver | CutTo | GoOn
) -> None:
    assert relocate(end_offset, leader_start=leader_start, leader_end=leader_end) == step


def test_what_a_request_asked_for_is_known_though_it_has_changed_since(session: Session) -> None:
    first, second = key_of(TOPIC, 0), key_of(TOPIC, 1)
    session.want(first, asked(5))
    sent = session.request(LIMITS, broker_epoch=9)
    assert session.asked_in(sent, first) == asked(5)
    session.want(first, asked(6))
    session.want(second, asked(0))
    session.want(first, asked(7))
    assert session.asked_in(sent, first) == asked(5)
    assert session.asked_in(sent, second) is None
    session.answered(FetchResponse(session_id=77))
    session.taken()
    later = session.request(LIMITS, broker_epoch=9)
    assert told(later.request) == [(0, 7), (1, 0)]
    session.unwant(first)
    assert session.asked_in(later, first) == asked(7)
    session.want(first, asked(7))
    assert session.asked_in(later, first) == asked(7)
    assert told(session.request(LIMITS, broker_epoch=9).request) == [(0, 7)], "it is told again, and not forgotten"


def test_a_follower_in_a_new_broker_epoch_names_everything_again(session: Session) -> None:
    session.ask(p0=1, p1=2)
    session.answered(FetchResponse(session_id=7))
    session.taken()
    assert told(session.request(LIMITS, broker_epoch=9).request) == []
    session.taken()
    assert len(told(session.request(LIMITS, broker_epoch=10).request)) == 2
    session.taken()
    assert told(session.request(LIMITS, broker_epoch=10).request) == []
