"""What is written as YAML is read as what it was, by the rules of YAML that every reader keeps."""

from __future__ import annotations

import pytest

from barnabas.cli.terminal.yaml_text import yaml_text


def test_maps_and_lists_are_nested_by_indent() -> None:
    value = [{"name": "orders", "partitions": [{"index": 0, "isr": [1, 2]}], "configs": {}, "replicas": []}]
    assert yaml_text(value) == (
        "- name: orders\n"
        "  partitions:\n"
        "    - index: 0\n"
        "      isr:\n"
        "        - 1\n"
        "        - 2\n"
        "  configs: {}\n"
        "  replicas: []\n"
    )


@pytest.mark.parametrize("text", ["no", "Yes", "on", "null", "12", "1e3", "", " a", "a: b", "#", "-", "a\nb", "~", "é"])
def test_text_that_could_mean_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"k": text}).startswith('k: "')


def test_values_that_are_no_text_are_not_quoted() -> None:
    assert yaml_text({"a": None, "b": True, "c": 1, "d": 0.5}) == "a: null\nb: true\nc: 1\nd: 0.5\n"


def test_a_list_in_a_list_keeps_its_place() -> None:
    assert yaml_text([[1, 2], [3]]) == "- - 1\n  - 2\n- - 3\n"
