"""What is shown in the editor, and which changes come back from it."""

from __future__ import annotations

import pytest

from barnabas.cli.cluster.config_edit import changes_of, own_settings, text_of
from barnabas.client.admin.configs import Change, ConfigEntry, ConfigSource, Operation, Resource, ResourceKind
from barnabas.ops.failure import Failure

TOPIC = Resource(ResourceKind.TOPIC, "orders")


def entry(name: str, value: str | None, source: ConfigSource, **more: bool) -> ConfigEntry:
    return ConfigEntry(name, value, source, more.get("read_only", False), more.get("sensitive", False), None)


ENTRIES = {
    each.name: each
    for each in (
        entry("retention.ms", "5", ConfigSource.TOPIC),
        entry("segment.ms", "6", ConfigSource.DEFAULT),
        entry("fixed", "7", ConfigSource.STATIC_BROKER, read_only=True),
        entry("password", None, ConfigSource.DYNAMIC_BROKER, sensitive=True),
    )
}


def test_what_is_set_stands_there_and_what_may_be_set_is_a_comment() -> None:
    lines = text_of(ENTRIES, TOPIC).splitlines()
    assert "retention.ms=5" in lines
    assert "# segment.ms=6" in lines
    assert not any("fixed" in line or "password" in line for line in lines)


def test_a_text_that_was_left_alone_changes_nothing() -> None:
    assert changes_of(own_settings(ENTRIES, TOPIC), text_of(ENTRIES, TOPIC)) == []


def test_lines_are_set_changed_and_let_go() -> None:
    before = {"a": "1", "b": "2", "c": "3"}
    assert changes_of(before, "a = 1\nb=9\n# c=3\nd:4\n") == [
        Change("b", "9"),
        Change("d", "4"),
        Change("c", None, Operation.DELETE),
    ]


def test_what_is_there_twice_is_refused() -> None:
    with pytest.raises(Failure, match="a is there twice"):
        changes_of({}, "a=1\na=2\n")
