"""Every setting that is accepted has an effect, and names the test that shows it; what has none says so.

``tests/settings.toml`` is the list. A broker setting that is a topic's default needs no line: one test shows of all of
them that they reach the topics, and the topic's line shows what it does there.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from barnabas.broker.settings.broker import BROKER_SETTINGS
from barnabas.model.settings import Setting
from barnabas.storage.settings import TOPIC_SETTINGS

ROOT = Path(__file__).parents[2]
SHOWN: dict[str, dict[str, str]] = tomllib.loads((ROOT / "tests" / "settings.toml").read_text())
DEFAULTS_OF_TOPICS = {name for setting in TOPIC_SETTINGS for name in setting.synonyms}
INHERITED = ("tests/unit/broker/test_topic_defaults.py", "test_a_default_of_the_broker_is_the_value_of_its_topics")
NEEDED = {
    "topic": [setting for setting in TOPIC_SETTINGS if not setting.unused],
    "broker": [each for each in BROKER_SETTINGS if not each.unused and each.name not in DEFAULTS_OF_TOPICS],
}


@cache
def source(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def names_in(path: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(source(path))) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("table", NEEDED)
def test_every_setting_names_the_test_that_shows_its_effect(table: str) -> None:
    missing = [setting.name for setting in NEEDED[table] if setting.name not in SHOWN[table]]
    assert missing == [], "name in tests/settings.toml the test that fails if the setting does nothing"


@pytest.mark.parametrize("table", NEEDED)
def test_no_line_is_about_a_setting_that_is_not_there(table: str) -> None:
    known = {setting.name for setting in NEEDED[table]}
    assert [name for name in SHOWN[table] if name not in known] == []


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in SHOWN for name in SHOWN[table]])
def test_the_test_that_is_named_is_there_and_speaks_of_the_setting(table: str, name: str) -> None:
    path, _, test = SHOWN[table][name].partition("::")
    assert (ROOT / path).exists(), f"{path} is not there"
    assert test in names_in(path), f"{path} has no {test}"
    setting = (TOPIC_SETTINGS if table == "topic" else BROKER_SETTINGS)[name]
    assert speaks_of(source(path), setting), f"{path} never speaks of {name}"


def speaks_of(text: str, setting: Setting) -> bool:
    """By its name, by its end after a prefix that others share, or by the attribute that holds its value."""
    parts = setting.name.split(".")
    ends = [".".join(parts[first:]) for first in range(max(1, len(parts) - 1))]
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in (*ends, setting.attribute))


def test_defaults_of_topics_are_shown_to_reach_them() -> None:
    path, test = INHERITED
    assert test in names_in(path)


def test_what_has_no_effect_says_why() -> None:
    for setting in BROKER_SETTINGS:
        if setting.unused:
            assert re.match(r"No effect here: .+\.$", setting.doc), setting.name
            assert not setting.sensitive or setting.check, f"{setting.name} guards something: refuse it instead"


@pytest.mark.parametrize("setting", [*TOPIC_SETTINGS, *BROKER_SETTINGS], ids=lambda setting: setting.name)
def test_every_setting_says_what_it_does(setting: Setting) -> None:
    assert setting.doc[0].isupper(), setting.doc
    assert setting.doc.endswith((".", ";")), setting.doc
    if setting.default is not None:
        assert setting.checked(setting.default) == setting.default
