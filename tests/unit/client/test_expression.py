"""What a filter says of a record, and what it says to somebody who has mistyped it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import InvalidExpression
from barnabas.client.scan.expression import DEPTH_MAX, compile_expression

FIELDS: dict[str, Any] = {
    "topic": "orders",
    "partition": 2,
    "offset": 1000,
    "timestamp": 1_767_225_600_000,
    "key": "customer-7",
    "value": '{"total": 120.5, "paid": true, "who": {"name": "Ann"}, "lines": [{"sku": "a"}, {"sku": "b"}], "n": null}',
    "headers": {"region": "eu", "try": "3"},
}


@pytest.mark.parametrize(
    "text",
    [
        "value.total > 100",
        'value.total > 100 && headers.region == "eu"',
        "value.total < 100 || key == 'customer-7'",
        "!(value.total < 100)",
        "!!value.paid",
        "value.paid == true && value.who.name == 'Ann'",
        "value.lines[1].sku == 'b'",
        "value['who']['name'].startsWith('A')",
        "size(value.lines) == 2 && size(key) == 10",
        "has(value.who) && !has(value.nobody) && !has(value.n)",
        "headers.try >= 3 && headers['try'] == 3",
        "key.matches('^customer-[0-9]+$') && key.endsWith('7') && value.contains('Ann')",
        "partition in [1, 2] && 'region' in headers",
        "timestamp == timestamp('2026-01-01T00:00:00Z') && timestamp > timestamp('2025-12-31')",
        "offset % 10 == 0 && offset / 10 + 1 == 101 && -partition == 0 - 2 && 2 + 3 * 4 == 14",
        "int('12') == 12 && double('1.5') > 1 && string(offset) == '1000'",
        "topic != 'other' && value.nobody == null",
        "true",
    ],
)
def test_this_holds(text: str) -> None:
    assert compile_expression(text).holds(FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        "value.total > 1000",
        "value.missing > 0",
        "value.missing < 0",
        "key > 5",
        "value.paid == 1",
        "value.total.deeper.still == 1",
        "value.lines[7].sku == 'a'",
        "offset / 0 == 1",
        "headers.missing == 'x'",
        "null",
        "1 in 5",
        "value.who + 1 == 2",
    ],
)
def test_this_does_not_hold_and_fails_nothing(text: str) -> None:
    assert not compile_expression(text).holds(FIELDS)


def test_values_that_are_no_json_have_no_members() -> None:
    assert not compile_expression("value.total > 1").holds({**FIELDS, "value": "hello"})
    assert not compile_expression("value.total > 1").holds({**FIELDS, "value": None})
    assert compile_expression("value == 'hello' && value.contains('ell')").holds({**FIELDS, "value": "hello"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing"),
        ("value.total >", "missing"),
        ("(value.total > 1", "')'"),
        ("value.total > 1 1", "not expected"),
        ("valu.total > 1", "there is no 'valu'"),
        ("value.total ~ 1", "not understood"),
        ("length(key) == 1", "size"),
        ("key.upper() == 'A'", "contains"),
        ("key == 'open", "not understood"),
        ("(" * (DEPTH_MAX + 1) + "1" + ")" * (DEPTH_MAX + 1), "parentheses"),
        ("key.", "name"),
        ("a @ b", "not understood"),
    ],
)
def test_a_mistake_is_one_line_that_says_where(text: str, said: str) -> None:
    with pytest.raises(InvalidExpression) as raised:
        compile_expression(text)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pattern_that_is_none_is_said() -> None:
    with pytest.raises(InvalidExpression, match="regular expression"):
        compile_expression("key.matches('(')").holds(FIELDS)
