"""Settings declared as fields: their table, their values, and what is kept out of a printed object."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from barnabas.model.declared import Declared, named
from barnabas.model.settings import InvalidSetting, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Example(Declared):
    count: int = named("example.count", Kind.INT, 3, "A count.", minimum=1)
    wait_ms: int = named("example.wait.seconds", Kind.INT, 2, "A time.", convert=lambda seconds: seconds * 1000)
    password: str = named("example.password", Kind.PASSWORD, "", "A secret.", sensitive=True)
    name: str = "nobody"


def test_a_field_that_is_not_given_has_its_default_converted_like_a_given_value() -> None:
    assert Example.of_values({}) == Example() == Example(count=3, wait_ms=2000, password="", name="nobody")
    assert Example.of_values({"example.wait.seconds": 5, "other": 1}).wait_ms == 5000


def test_fields_without_a_setting_are_given_by_the_caller_and_are_in_no_table() -> None:
    assert Example.of_values({"example.count": 7}, name="a", wait_ms=1) == Example(count=7, wait_ms=1, name="a")
    assert [setting.name for setting in Example.table()] == [
        "example.count",
        "example.wait.seconds",
        "example.password",
    ]


def test_limits_hold_where_a_text_is_parsed() -> None:
    assert Example.of_values(Example.table().parse({"example.count": "4"})).count == 4
    with pytest.raises(InvalidSetting, match="at least 1"):
        Example.table().parse({"example.count": "0"})


def test_a_sensitive_value_is_not_printed() -> None:
    assert "hunter2" not in repr(Example(password="hunter2"))
