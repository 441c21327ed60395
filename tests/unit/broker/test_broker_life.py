"""A broker's life, event by event: registered fenced, let in when ready, sent off when others have taken over."""

from __future__ import annotations

from barnabas.broker.node.broker_life import (
    CATCH_UP_MS,
    FIRST_LEAVE_MS,
    LEAVE_MS_MAX,
    LEAVE_SILENCE_MS_MAX,
    RETRY_MS_MIN,
    BrokerLife,
    Phase,
)


def life(now_ms: int = 0) -> BrokerLife:
    return BrokerLife(heartbeat_interval_ms=2000, session_timeout_ms=9000, now_ms=now_ms)


def running() -> BrokerLife:
    one = life()
    one.registered(7, now_ms=0)
    one.ready(now_ms=0)
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=0)
    assert one.phase is Phase.RUNNING
    return one


def test_a_registered_broker_stays_fenced_until_its_node_is_ready() -> None:
    one = life()
    one.registered(7, now_ms=5)
    assert (one.phase, one.epoch, one.wants_fence) == (Phase.RECOVERY, 7, True)
    assert one.next_ms == 2005
    one.ready(now_ms=100)
    assert not one.wants_fence
    assert one.next_ms == 100


def test_one_that_is_not_caught_up_asks_again_soon() -> None:
    one = life()
    one.registered(7, now_ms=0)
    one.ready(now_ms=0)
    one.answered(is_caught_up=False, is_fenced=True, may_go=False, now_ms=50)
    assert one.phase is Phase.RECOVERY
    assert one.next_ms == 50 + CATCH_UP_MS


def test_heartbeats_come_at_their_interval() -> None:
    one = running()
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=1000)
    assert one.next_ms == 3000


def test_pauses_after_failures_grow_up_to_half_a_session() -> None:
    one = running()
    pauses = []
    for _ in range(8):
        one.failed(now_ms=0)
        pauses.append(one.next_ms)
    assert pauses == [RETRY_MS_MIN, 200, 400, 800, 1600, 3200, 4500, 4500]
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=0)
    one.failed(now_ms=0)
    assert one.next_ms == RETRY_MS_MIN


def test_a_broker_that_never_registered_goes_at_once() -> None:
    one = life()
    one.stop(is_controlled=True, now_ms=0)
    assert one.phase is Phase.GONE


def test_a_stop_waits_until_the_controller_lets_the_broker_go() -> None:
    one = running()
    one.stop(is_controlled=True, now_ms=10)
    assert (one.phase, one.wants_shut_down, one.next_ms) == (Phase.STOPPING, True, 10)
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=20)
    assert one.next_ms == 20 + FIRST_LEAVE_MS
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=100)
    assert one.next_ms == 100 + 2 * FIRST_LEAVE_MS
    one.answered(is_caught_up=True, is_fenced=True, may_go=True, now_ms=2100)
    assert one.phase is Phase.GONE


def test_a_stop_waits_for_nobody_if_it_is_told_so() -> None:
    one = running()
    one.stop(is_controlled=False, now_ms=10)
    assert one.phase is Phase.GONE


def test_a_stop_gives_up_on_a_controller_that_does_not_answer() -> None:
    one = running()
    one.stop(is_controlled=True, now_ms=0)
    one.failed(now_ms=100)
    assert not one.give_up(now_ms=LEAVE_SILENCE_MS_MAX - 1)
    assert one.give_up(now_ms=LEAVE_SILENCE_MS_MAX)
    assert one.phase is Phase.GONE


def test_a_stop_is_bounded_even_if_the_controller_always_answers() -> None:
    one = running()
    one.stop(is_controlled=True, now_ms=0)
    now_ms = 0
    while not one.give_up(now_ms=now_ms):
        one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=now_ms)
        assert one.next_ms <= LEAVE_MS_MAX
        now_ms = one.next_ms
    assert now_ms == LEAVE_MS_MAX


def test_news_do_not_wait_for_the_next_heartbeat() -> None:
    one = running()
    one.hurry(now_ms=500)
    assert one.next_ms == 500
    # The answer that comes now may be that to a heartbeat from before.
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=510)
    assert one.next_ms == 510 + CATCH_UP_MS
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=600)
    assert one.next_ms == 2600


def test_a_broker_that_is_unregistered_registers_again_and_is_let_in_as_before() -> None:
    one = running()
    one.unregistered(now_ms=50)
    assert (one.phase, one.is_registered, one.next_ms) == (Phase.RECOVERY, False, 50)
    one.registered(9, now_ms=60)
    assert (one.phase, one.epoch, one.next_ms, one.wants_fence) == (Phase.RECOVERY, 9, 60, False)
    one.answered(is_caught_up=True, is_fenced=False, may_go=False, now_ms=70)
    assert one.phase is Phase.RUNNING


def test_nobody_waits_for_a_broker_that_is_unregistered_on_its_way_out() -> None:
    one = running()
    one.stop(is_controlled=True, now_ms=10)
    one.unregistered(now_ms=50)
    assert one.phase is Phase.GONE
