"""A fetch session seen from the client: what it tells a broker, and when it starts again."""

from __future__ import annotations

from barnabas.client.fetch.session import EPOCH_MAX, FetchSession, Wanted
from barnabas.model.ids import TopicPartition, Uuid

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER = Uuid(b"1" * 16), Uuid(b"2" * 16)


def want(offset: int, topic_id: Uuid = ID) -> Wanted:
    return Wanted(topic_id, offset, 0, 1000)


def test_the_first_request_tells_everything_and_asks_for_a_session() -> None:
    plan = FetchSession().plan({A: want(0), B: want(5)})
    assert (plan.session_id, plan.epoch) == (0, 0)
    assert list(plan.changed) == [A, B]
    assert not plan.forgotten


def test_later_requests_tell_only_what_changed() -> None:
    session = FetchSession()
    session.plan({A: want(0), B: want(5)})
    session.answered(77)
    plan = session.plan({A: want(3), B: want(5)})
    assert (plan.session_id, plan.epoch, plan.changed, plan.forgotten) == (77, 1, {A: want(3)}, {})
    session.answered(77)
    plan = session.plan({A: want(3)})
    assert (plan.epoch, plan.changed, plan.forgotten) == (2, {}, {B: ID})


def test_a_topic_made_anew_is_forgotten_and_told_again() -> None:
    session = FetchSession()
    session.plan({A: want(0)})
    session.answered(77)
    plan = session.plan({A: want(0, OTHER)})
    assert plan.forgotten == {A: ID}
    assert plan.changed == {A: want(0, OTHER)}


def test_a_broker_without_sessions_is_always_told_everything() -> None:
    session = FetchSession()
    session.plan({A: want(0)})
    session.answered(0)
    plan = session.plan({A: want(0)})
    assert (plan.session_id, plan.epoch, plan.changed) == (0, 0, {A: want(0)})


def test_after_an_error_the_session_starts_again() -> None:
    session = FetchSession()
    session.plan({A: want(0)})
    session.answered(77)
    session.reset()
    assert session.plan({A: want(0)})[:2] == (0, 0)


def test_epochs_wrap_to_one() -> None:
    session = FetchSession()
    session.plan({A: want(0)})
    session.answered(77)
    session._epoch = EPOCH_MAX
    session.answered(77)
    assert session.plan({A: want(0)}).epoch == 1
