"""Where a reader starts and ends, in the many ways in which people say it."""

from __future__ import annotations

import pytest

from barnabas.cli.records.consume import prepare
from barnabas.client.offsets import EARLIEST, LATEST, Start
from barnabas.ops.failure import Failure
from barnabas.ops.records.moments import parse_window

NOW = 1_000_000_000_000


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("start", EARLIEST, None),
        ("end", LATEST, None),
        ("42", Start.at(42), None),
        ("+5", Start.after_first(5), None),
        ("-5", Start.before_last(5), None),
        ("end-100", Start.before_last(100), None),
        ("start+7", Start.after_first(7), None),
        ("end-100:end", Start.before_last(100), LATEST),
        ("@2023-11-14", Start.at_time(1_699_920_000_000), None),
        ("-10m", Start.at_time(NOW - 600_000), None),
        ("@-1h", Start.at_time(NOW - 3_600_000), None),
        ("@1700000000", Start.at_time(1_700_000_000_000), None),
        ("@1700000000123", Start.at_time(1_700_000_000_123), None),
        ("@2023-11-14T22:13:20", Start.at_time(1_700_000_000_000), None),
        ("@2023-11-14T22:13:20+01:00", Start.at_time(1_699_996_400_000), None),
        ("5:9", Start.at(5), Start.at(9)),
        (":end", EARLIEST, LATEST),
        ("-1h:end", Start.at_time(NOW - 3_600_000), LATEST),
        ("@1700000000:@1700000001", Start.at_time(1_700_000_000_000), Start.at_time(1_700_000_001_000)),
        ("@2023-11-14T22:13:20:end", Start.at_time(1_700_000_000_000), LATEST),
    ],
)
def test_people_say_where_to_start_in_many_ways(text: str, start: Start, end: Start | None) -> None:
    assert parse_window(text, now_ms=NOW) == (start, end)


@pytest.mark.parametrize("text", ["yesterday", "@noon", "-5x", "1.5"])
def test_what_is_no_place_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Failure, match="say"):
        parse_window(text, now_ms=NOW)


def test_a_start_that_looks_like_an_option_is_one_word() -> None:
    assert prepare(["t", "-o", "-10m", "-e"]) == ["t", "-o-10m", "-e"]
    assert prepare(["t", "--offset", "-5"]) == ["t", "--offset=-5"]
    assert prepare(["t", "-o", "end", "-n", "5"]) == ["t", "-o", "end", "-n", "5"]
