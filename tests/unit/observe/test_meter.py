"""A meter counts for ever and tells the rate of the last one to two windows."""

from __future__ import annotations

import pytest

from barnabas.observe.meter import WINDOW_NS, Meter

SECOND_NS = 1_000_000_000


@pytest.mark.parametrize("start_ns", [0, 7 * SECOND_NS, 123_456_789_012])
def test_what_happens_regularly_has_its_rate_at_every_moment(start_ns: int) -> None:
    now_ns = [start_ns]
    meter = Meter(lambda: now_ns[0])
    for second in range(200):
        now_ns[0] += SECOND_NS
        meter.mark(5)
        if second > 60:
            assert meter.rate == pytest.approx(5, rel=0.05)
    assert meter.count == 1000


def test_a_rate_falls_to_nothing_and_the_count_stays() -> None:
    now_ns = [0]
    meter = Meter(lambda: now_ns[0])
    meter.mark(60)
    assert meter.rate == 2.0
    now_ns[0] = WINDOW_NS + WINDOW_NS // 2
    assert meter.rate == pytest.approx(60 / 45)
    now_ns[0] = 2 * WINDOW_NS
    assert meter.rate == 0
    now_ns[0] = 100 * WINDOW_NS
    assert meter.rate == 0
    meter.mark()
    assert meter.count == 61
    assert meter.rate == pytest.approx(1 / 30)
