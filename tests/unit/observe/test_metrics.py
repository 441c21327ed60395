"""The page of numbers, the histogram behind it, and the parts of a request's time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.observe.histogram import Histogram
from barnabas.observe.metrics import COUNTER, SUMMARY, Family, Metrics, Sample, one
from barnabas.observe.request_times import PARTS, RequestTimes


def test_a_page_has_the_form_of_prometheus() -> None:
    metrics = Metrics()
    metrics.add(lambda: [one("plain", "A number.", 7)])
    metrics.add(lambda: [Family("in_total", "Bytes.", [Sample(1.5, (("topic", "a"), ("p", "0")))], COUNTER)])
    metrics.add(lambda: [Family("t", "Times.", [Sample(2, (("quantile", "0.5"),)), Sample(9, (), "_count")], SUMMARY)])
    assert "".join(metrics.page()) == (
        "# HELP plain A number.\n# TYPE plain gauge\nplain 7\n"
        '# HELP in_total Bytes.\n# TYPE in_total counter\nin_total{topic="a",p="0"} 1.5\n'
        '# HELP t Times.\n# TYPE t summary\nt{quantile="0.5"} 2\nt_count 9\n'
    )


def test_a_label_cannot_forge_a_line() -> None:
    metrics = Metrics()
    metrics.add(lambda: [Family("n", "N.", [Sample(1, (("client", 'a"} 1\nevil 2\\'),))])])
    assert "".join(metrics.page()).splitlines()[2:] == ['n{client="a\\"} 1\\nevil 2\\\\"} 1']


def test_two_sources_of_one_family_are_a_mistake() -> None:
    metrics = Metrics()
    metrics.add(lambda: [one("n", "N.", 1)])
    metrics.add(lambda: [one("n", "N.", 2)])
    with pytest.raises(AssertionError, match="two sources give n"):
        list(metrics.page())


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60), st.sampled_from((0.5, 0.75, 0.99)))
def test_a_quantile_is_right_to_an_eighth(durations: list[int], quantile: float) -> None:
    histogram = Histogram()
    for duration in durations:
        histogram.record(duration)
    (found,) = histogram.quantiles_ms((quantile,))
    ordered = sorted(durations)
    below = ordered[max(0, -(-int(quantile * len(ordered) * 1000) // 1000) - 1)]
    place = next(i for i, each in enumerate(ordered, 1) if i >= quantile * len(ordered)) - 1
    assert min(below, ordered[place]) * 0.87 - 1 <= found * 1e6 <= ordered[place] * 1.13 + 1
    assert (histogram.count, histogram.sum_ns) == (len(durations), sum(durations))


def test_quantiles_forget_what_is_two_windows_old_and_counts_do_not() -> None:
    histogram = Histogram()
    histogram.record(5_000_000)
    histogram.turn()
    assert histogram.quantiles_ms((0.5,))[0] > 4
    histogram.turn()
    assert histogram.quantiles_ms((0.5, 0.99)) == [0, 0]
    assert histogram.count == 1


def test_the_parts_of_a_request_add_up() -> None:
    now = 0

    def clock() -> int:
        return now

    times = RequestTimes(clock)
    now = 10
    timing = times.begin(times.kind("Produce"), arrived_ns=4)
    now = 30
    timing.handled()
    assert not timing.left(), "its answer is not there yet"
    now = 70
    timing.ready()
    now = 75
    timing.leaving()
    now = 76
    assert timing.left()
    sums = {name: part.sum_ns for name, part in zip(PARTS, times.of["Produce"].parts, strict=True)}
    assert sums == {
        "total": 72, "request_queue": 6, "local": 20, "remote": 40, "response_queue": 5, "response_send": 1
    }  # fmt: skip
    assert sums["total"] == sum(sums.values()) - sums["total"]
