"""Fetch sessions remember what a client wants, count its epochs and stay within their limit."""

from __future__ import annotations

from random import Random

import pytest
from hand_clock import HandClock

from barnabas.broker.fetching.sessions import EVICTION_MS_MIN, FINAL_EPOCH, INITIAL_EPOCH, FetchSessions, Session
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.testing.world import SeededEntropy
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse


def request(session_id: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic="t",
                partitions=[
                    FetchRequest.FetchPartition(partition=index, fetch_offset=7, partition_max_bytes=1)
                    for index in partitions
                ],
            )
        ],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="t", partitions=list(forgotten))],
    )


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sessions(clock: HandClock) -> FetchSessions:
    return FetchSessions(clock, SeededEntropy(Random(1)), sessions_max=2)


def opened(sessions: FetchSessions, *partitions: int) -> Session:
    session, _, is_incremental = sessions.open(request(0, INITIAL_EPOCH, *partitions), uses_topic_ids=False)
    assert session is not None
    assert not is_incremental
    return session


def test_a_session_remembers_adds_changes_and_forgets(sessions: FetchSessions) -> None:
    session = opened(sessions, 0, 1)
    _, wanted, is_incremental = sessions.open(request(session.id, 1, 2, forgotten=(0,)), uses_topic_ids=False)
    assert is_incremental
    assert [item.index for item in wanted] == [1, 2]
    _, wanted, _ = sessions.open(request(session.id, 2), uses_topic_ids=False)
    assert [item.index for item in wanted] == [1, 2]


def test_a_wrong_epoch_or_session_sends_the_client_back_to_the_start(sessions: FetchSessions) -> None:
    session = opened(sessions, 0)
    with pytest.raises(ApiError) as caught:
        sessions.open(request(session.id, 2), uses_topic_ids=False)
    assert caught.value.error is errors.INVALID_FETCH_SESSION_EPOCH
    with pytest.raises(ApiError) as caught:
        sessions.open(request(session.id + 1, 1), uses_topic_ids=False)
    assert caught.value.error is errors.FETCH_SESSION_ID_NOT_FOUND
    with pytest.raises(ApiError) as caught:
        sessions.open(request(session.id, 1), uses_topic_ids=True)
    assert caught.value.error is errors.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_wraps_to_one(sessions: FetchSessions) -> None:
    session = opened(sessions, 0)
    session.epoch = 2**31 - 1
    sessions.open(request(session.id, 2**31 - 1), uses_topic_ids=False)
    assert session.epoch == 1


def test_a_client_that_ends_its_session_frees_it(sessions: FetchSessions) -> None:
    session = opened(sessions, 0)
    sessions.open(request(session.id, FINAL_EPOCH), uses_topic_ids=False)
    assert len(sessions) == 0


def test_a_full_cache_gives_no_session_until_one_has_been_idle_long_enough(
    sessions: FetchSessions, clock: HandClock
) -> None:
    opened(sessions, 0)
    opened(sessions, 0)
    assert sessions.open(request(0, INITIAL_EPOCH, 0), uses_topic_ids=False)[0] is None
    clock.now_ms += EVICTION_MS_MIN
    opened(sessions, 0)
    assert len(sessions) == 2


def test_an_incremental_answer_mentions_a_partition_only_when_something_changed(sessions: FetchSessions) -> None:
    session = opened(sessions, 0)
    (wanted,) = session.wanted.values()
    answer = FetchResponse.PartitionData(high_watermark=5, last_stable_offset=5, log_start_offset=0, records=b"")
    assert wanted.is_news(answer)
    assert not wanted.is_news(answer)
    answer.high_watermark = 6
    assert wanted.is_news(answer)
    answer.error_code = 3
    assert wanted.is_news(answer)
    assert wanted.is_news(answer), "an error is told until it is gone"


def test_a_partition_that_gave_data_is_served_last_next_time(sessions: FetchSessions) -> None:
    session = opened(sessions, 0, 1, 2)
    session.told(next(iter(session.wanted.values())), is_served=True)
    _, wanted, _ = sessions.open(request(session.id, 1), uses_topic_ids=False)
    assert [item.index for item in wanted] == [1, 2, 0]


def test_what_has_no_news_is_not_looked_at(sessions: FetchSessions) -> None:
    session = opened(sessions, 0, 1, 2)
    for item in session.wanted.values():
        item.is_settled = True
        session.told(item, is_served=False)
    assert sessions.open(request(session.id, 1), uses_topic_ids=False)[1] == []
    _, wanted, _ = sessions.open(request(session.id, 2, 1, 3), uses_topic_ids=False)
    assert [item.index for item in wanted] == [1, 3], "what the client names is looked at"
    next(iter(session.wanted.values()))._on_news()
    _, wanted, _ = sessions.open(request(session.id, 3), uses_topic_ids=False)
    assert [item.index for item in wanted] == [1, 3, 0]


def test_a_follower_gets_a_session_at_the_expense_of_a_consumer(sessions: FetchSessions, clock: HandClock) -> None:
    first, second = opened(sessions, 0), opened(sessions, 1)
    clock.now_ms = 10
    sessions.open(request(first.id, 1), uses_topic_ids=False)
    session, _, _ = sessions.open(request(0, INITIAL_EPOCH, 0), uses_topic_ids=False, is_follower=True)
    assert session is not None
    with pytest.raises(ApiError) as gone:
        sessions.open(request(second.id, 1), uses_topic_ids=False)
    assert gone.value.error is errors.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.open(request(0, INITIAL_EPOCH, 0), uses_topic_ids=False)[0] is None, "a consumer waits its time"


def test_a_new_request_ends_the_wait_of_the_one_before(sessions: FetchSessions) -> None:
    session = opened(sessions, 0)
    calls: list[str] = []
    session.supersede = lambda: calls.append("answered")
    sessions.open(request(session.id, 1), uses_topic_ids=False)
    assert calls == ["answered"]
    sessions.open(request(session.id, FINAL_EPOCH, 0), uses_topic_ids=False)
    assert calls == ["answered", "answered"]


def test_a_follower_that_names_a_partition_is_told_its_high_watermark_again(sessions: FetchSessions) -> None:
    told = FetchResponse.PartitionData(high_watermark=5, last_stable_offset=5, log_start_offset=0)
    for is_follower in (False, True):
        session, wanted, _ = sessions.open(request(0, INITIAL_EPOCH, 0), uses_topic_ids=False, is_follower=is_follower)
        assert session is not None
        assert wanted[0].is_news(told)
        sessions.open(request(session.id, 1, 0), uses_topic_ids=False)
        assert wanted[0].is_news(told) == is_follower
