"""Which lane a fetch may take, and how long it may wait there."""

from __future__ import annotations

from barnabas.client.fetch.lanes import FETCH_LANE, HELD_SECONDS_MIN, SIDE_LANE, FetchLanes
from barnabas.model.ids import TopicPartition

IDLE, BUSY = TopicPartition("t", 0), TopicPartition("t", 1)
LEADER, OTHER = 1, 2


def test_a_request_goes_beside_one_that_is_held_but_does_not_overtake_an_answer() -> None:
    lanes = FetchLanes(wait_ms_max=500)
    assert lanes.free(LEADER, 0.0) == FETCH_LANE
    assert lanes.depart(LEADER, FETCH_LANE, [IDLE], 0.0) == 500
    assert lanes.is_asked(IDLE)
    assert not lanes.is_asked(BUSY)
    assert lanes.free(OTHER, 0.0) == FETCH_LANE
    assert lanes.free(LEADER, 0.001) is None
    assert lanes.free_at(LEADER, 0.001) == HELD_SECONDS_MIN
    assert lanes.free(LEADER, 0.1) == SIDE_LANE
    assert lanes.free_at(LEADER, 0.1) is None


def test_the_two_wait_until_the_same_time_and_go_together_again() -> None:
    lanes = FetchLanes(wait_ms_max=500)
    lanes.depart(LEADER, FETCH_LANE, [IDLE], 0.0)
    assert lanes.depart(LEADER, SIDE_LANE, [BUSY], 0.2) == 300
    assert lanes.free(LEADER, 0.3) is None
    assert lanes.free_at(LEADER, 0.3) is None
    lanes.arrive(LEADER, SIDE_LANE)
    assert lanes.free(LEADER, 0.5) is None  # the answer to the first is due
    lanes.arrive(LEADER, FETCH_LANE)
    assert lanes.free(LEADER, 0.5) == FETCH_LANE
    assert not lanes.is_asked(IDLE)
    assert not lanes.is_asked(BUSY)


def test_the_second_lane_is_not_there_for_fetches_that_never_wait() -> None:
    lanes = FetchLanes(wait_ms_max=0)
    assert lanes.depart(LEADER, FETCH_LANE, [IDLE], 1.0) == 0
    assert lanes.free(LEADER, 1.0) is None
    assert lanes.free_at(LEADER, 1.0) is None
    assert lanes.free(LEADER, 2.0) is None
