"""Rates over windows and buckets of tokens: as Kafka computes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.quota import TokenBucket, WindowedRate


def rate() -> WindowedRate:
    return WindowedRate(windows=11, window_ms=1000)


def test_below_the_limit_nobody_waits() -> None:
    used = rate()
    for second in range(30):
        assert used.record(90, now_ms=second * 1000, limit=100) == 0


def test_a_burst_waits_until_the_average_is_right() -> None:
    # 1500 in ten full windows are 150 a second; at 100 a second they take 15 seconds: 5 more.
    assert rate().record(1500, now_ms=0, limit=100) == 5000


def test_the_current_window_counts_for_the_time_that_has_passed() -> None:
    used = rate()
    used.record(1000, now_ms=0, limit=100)
    # Ten full windows have passed and half of another: 1200 in 10.5 seconds.
    assert used.record(200, now_ms=10_500, limit=100) == 1500


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    used = rate()
    used.record(100_000, now_ms=0, limit=100)
    assert used.throttle_ms(now_ms=10_999, limit=100) > 0
    assert used.throttle_ms(now_ms=11_000, limit=100) == 0
    assert used.is_idle(11_000)


def test_what_is_taken_back_does_not_count() -> None:
    used = rate()
    assert used.record(5000, now_ms=0, limit=100) > 0
    used.take_back(5000)
    assert used.throttle_ms(now_ms=0, limit=100) == 0


@given(st.lists(st.tuples(st.integers(0, 1500), st.integers(1, 500)), min_size=1, max_size=80), st.integers(1, 200))
def test_more_never_means_less_waiting_and_taking_back_undoes_it(steps: list[tuple[int, int]], limit: int) -> None:
    used, now_ms = rate(), 0
    for pause_ms, amount in steps:
        now_ms += pause_ms
        before_ms = used.record(0, now_ms=now_ms, limit=limit)
        after_ms = used.record(amount, now_ms=now_ms, limit=limit)
        assert after_ms >= before_ms >= 0
        used.take_back(amount)
        assert used.throttle_ms(now_ms=now_ms, limit=limit) == before_ms
        used.record(amount, now_ms=now_ms, limit=limit)
    assert used.throttle_ms(now_ms=now_ms + 11_000, limit=limit) == 0


def test_a_bucket_gives_a_burst_and_then_as_fast_as_it_fills() -> None:
    bucket = TokenBucket(windows=10, window_ms=1000, limit=5, now_ms=0)
    bucket.take(50, now_ms=0, limit=5)
    assert bucket.throttle_ms(now_ms=0, limit=5) == 0
    bucket.take(10, now_ms=0, limit=5)
    assert bucket.throttle_ms(now_ms=0, limit=5) == 2000
    assert bucket.throttle_ms(now_ms=1999, limit=5) == pytest.approx(1, abs=1)
    assert bucket.throttle_ms(now_ms=2000, limit=5) == 0


def test_a_bucket_never_holds_more_than_the_burst() -> None:
    bucket = TokenBucket(windows=10, window_ms=1000, limit=5, now_ms=0)
    bucket.take(51, now_ms=1_000_000, limit=5)
    assert bucket.throttle_ms(now_ms=1_000_000, limit=5) == 200
