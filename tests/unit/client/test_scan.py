"""A batch is skipped only if no record of it can match: needles are necessary, whatever the JSON looks like."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.scan.expression import compile_expression
from barnabas.client.scan.needles import Needle, Probe
from barnabas.client.scan.times import parse_time_ms

TEXTS = st.sampled_from(["eu", "us", "a b", "é", "10", "1e1", 'q"q', "x/y", "", "<b>", "\ufffd"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-20, 20) | st.sampled_from([10.0, 0.5]) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)
FORMS = (
    "key == {0}",
    "value.a == {0}",
    "{0} == value.a.b",
    "value.contains({0})",
    "key.startsWith({0})",
    "value == {0}",
    "headers.h == {0}",
    "value.a.contains({0})",
    "value.b > 1",
    "!(key == {0})",
    "value.a != {0}",
    "has(value.b)",
)
PARTS = st.sampled_from(FORMS)


@given(
    parts=st.lists(st.tuples(PARTS, TEXTS), min_size=1, max_size=3),
    joint=st.sampled_from([" && ", " || "]),
    key=TEXTS,
    value=VALUES,
    header=TEXTS,
    is_ascii=st.booleans(),
)
def test_what_holds_is_never_skipped(
    parts: list[tuple[str, str]], joint: str, key: str, value: Any, header: str, is_ascii: bool
) -> None:
    expression = compile_expression(joint.join(f"({form.format(json.dumps(text))})" for form, text in parts))
    stored = json.dumps(value, ensure_ascii=is_ascii)
    fields = {"key": key, "value": stored, "headers": {"h": header}}
    payload = b"\x00".join(each.encode() for each in (key, stored, "h", header))
    if expression.holds(fields):
        assert Probe(expression.needles).may_match(payload)


@pytest.mark.parametrize(
    ("text", "needles"),
    [
        ('key == "k"', {Needle(b"k")}),
        ('value.region == "eu" && value.total > 5', {Needle(b"eu", may_be_escaped=True)}),
        ('key == "a" || key == "b"', set()),
        ('(key == "a" && value.contains("x")) || key == "a"', {Needle(b"a")}),
        ('value.total == "10"', set()),
        ('key != "a"', set()),
        ('!(key == "a")', set()),
        ('headers.trace == "t1"', {Needle(b"t1")}),
        ("key == 5", set()),
    ],
)
def test_needles_of_expressions(text: str, needles: set[Needle]) -> None:
    assert compile_expression(text).needles == needles


def test_a_probe_reads_views_too() -> None:
    probe = Probe([Needle(b"needle")])
    assert probe.may_match(memoryview(b"hay needle hay"))
    assert not probe.may_match(memoryview(b"hay"))


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_times_are_read_as_the_standard_library_reads_them(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    expected = round(moment.replace(tzinfo=UTC).timestamp() * 1000)
    assert parse_time_ms(moment.isoformat()) == expected
    assert parse_time_ms(moment.isoformat() + "+02:00") == expected - 7_200_000


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-29", "2026-01-01T25:00"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_time_ms(text) is None
