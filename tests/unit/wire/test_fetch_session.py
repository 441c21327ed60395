"""The fetching side of a fetch session: what requests name, and how a session starts again."""

from __future__ import annotations

import pytest

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import Uuid
from barnabas.wire.fetch_session import EPOCH_MAX, FetchSession, Key, Plan, Wanted, sessionless
from barnabas.wire.messages.fetch import FetchResponse

ID, OTHER = Uuid(b"1" * 16), Uuid(b"2" * 16)
A: Key = ("t", ID, 0)
B: Key = ("t", ID, 1)
GRANTED = FetchResponse(session_id=77)


def want(offset: int) -> Wanted:
    return Wanted(offset, 0, 1000)


def next_plan(session: FetchSession, wanted: dict[Key, Wanted]) -> Plan:
    session.want_only(wanted)
    return session.plan()


def opened(*keys: Key) -> FetchSession:
    session = FetchSession()
    next_plan(session, {key: want(0) for key in keys})
    assert session.answered(GRANTED) is None
    return session


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    plan = next_plan(FetchSession(), {A: want(0), B: want(5)})
    assert (plan.session_id, plan.epoch) == (0, 0)
    assert list(plan.wanted) == [A, B]
    assert not plan.forgotten


def test_later_requests_name_only_what_changed() -> None:
    session = opened(A, B)
    plan = next_plan(session, {A: want(3), B: want(0)})
    assert (plan.session_id, plan.epoch, plan.wanted, list(plan.forgotten)) == (77, 1, {A: want(3)}, [])
    session.answered(GRANTED)
    plan = next_plan(session, {A: want(3)})
    assert (plan.epoch, plan.wanted, list(plan.forgotten)) == (2, {}, [B])


def test_a_partition_that_is_wanted_again_before_the_next_request_is_not_forgotten() -> None:
    session = opened(A, B)
    session.unwant(B)
    session.want(B, want(0))
    plan = session.plan()
    assert (plan.wanted, list(plan.forgotten)) == ({B: want(0)}, [])


def test_a_topic_that_was_created_again_is_forgotten_and_named_again() -> None:
    session = opened(A)
    again: Key = ("t", OTHER, 0)
    plan = next_plan(session, {again: want(0)})
    assert list(plan.forgotten) == [A]
    assert plan.wanted == {again: want(0)}


def test_a_broker_without_sessions_gets_full_requests() -> None:
    session = FetchSession()
    next_plan(session, {A: want(0)})
    session.answered(FetchResponse(session_id=0))
    plan = next_plan(session, {A: want(0)})
    assert (plan.session_id, plan.epoch, plan.wanted) == (0, 0, {A: want(0)})


def test_after_a_lost_response_the_next_request_is_full_and_names_the_old_session() -> None:
    session = opened(A, B)
    next_plan(session, {A: want(1)})
    session.failed()
    plan = next_plan(session, {A: want(1)})
    assert (plan.session_id, plan.epoch, plan.wanted, list(plan.forgotten)) == (77, 0, {A: want(1)}, [])
    session.answered(FetchResponse(session_id=78))
    assert next_plan(session, {A: want(1)})[:2] == (78, 1)


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (errors.FETCH_SESSION_ID_NOT_FOUND, 0),
        (errors.INVALID_FETCH_SESSION_EPOCH, 77),
        (errors.FETCH_SESSION_TOPIC_ID_ERROR, 77),
    ],
)
def test_a_session_that_is_refused_starts_again(error: WireError, session_id: int) -> None:
    session = opened(A)
    session.plan()
    assert session.answered(FetchResponse(error_code=error.code)) is error
    assert session.plan() == (session_id, 0, {A: want(0)}, ())


def test_epochs_wrap_to_one() -> None:
    session = opened(A)
    session._epoch = EPOCH_MAX
    assert session.plan().epoch == EPOCH_MAX
    session.answered(GRANTED)
    assert session.plan().epoch == 1


def test_a_request_without_a_session_names_none() -> None:
    assert sessionless({A: want(0)})[:2] == (0, -1)


def test_partitions_are_grouped_by_topic() -> None:
    other: Key = ("u", OTHER, 3)
    plan = Plan(0, 0, {A: want(1), other: want(2), B: want(3)}, [other, B, A])
    assert [
        (topic.topic, topic.topic_id, [each.partition for each in topic.partitions]) for topic in plan.topics()
    ] == [
        ("t", ID, [0, 1]),
        ("u", OTHER, [3]),
    ]
    assert [(topic.topic, topic.partitions) for topic in plan.forgotten_topics()] == [("u", [3]), ("t", [1, 0])]
