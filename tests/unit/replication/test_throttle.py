"""Throttles let a second's worth through at once and the allowed rate after that, for the replicas that are named."""

from __future__ import annotations

import pytest

from barnabas.replication.throttle import Throttle, is_throttled


def test_what_flows_runs_off_at_the_rate() -> None:
    throttle = Throttle()
    assert not throttle.is_exceeded(1000, 0)
    throttle.record(1000)
    assert not throttle.is_exceeded(1000, 0)
    throttle.record(2500)
    assert throttle.is_exceeded(1000, 0)
    assert throttle.is_exceeded(1000, 2400)
    assert not throttle.is_exceeded(1000, 2500)
    assert throttle.total_bytes == 3500


def test_over_a_long_time_the_rate_is_kept() -> None:
    throttle = Throttle()
    sent = 0
    for now_ms in range(0, 100_000, 50):
        if not throttle.is_exceeded(1000, now_ms):
            throttle.record(300)
            sent += 300
    assert 99_000 <= sent <= 102_000


@pytest.mark.parametrize(
    ("replicas", "is_named"),
    [
        ((), False),
        (("*",), True),
        (("none",), False),
        (("0:1", "3:2"), True),
        (("3:1", "2:2"), False),
        (("33:2",), False),
    ],
)
def test_which_replicas_are_throttled(replicas: tuple[str, ...], *, is_named: bool) -> None:
    assert is_throttled(replicas, partition=3, broker_id=2) == is_named
