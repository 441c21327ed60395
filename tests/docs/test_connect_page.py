"""The examples of the page on connectors work: the plugin is found and called, the connectors are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from barnabas.cli.connect.connector_files import read_connectors
from barnabas.connect.catalog import PluginSettings, load
from barnabas.connect.config import Config
from barnabas.connect.connector_config import validate
from barnabas.connect.records import Record

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "CONNECT.md").read_text()


def example(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_connectors_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(example("yaml"))
    catalog = load(PluginSettings())
    connectors = read_connectors(path)
    assert [each.name for each in connectors] == ["orders", "orders-to-files"]
    for each in connectors:
        assert validate(catalog, each.config)["error_count"] == 0
    assert len(list(yaml.safe_load_all(example("yaml")))) == 2


def test_the_plugin_is_found_and_its_transform_works(tmp_path: Path) -> None:
    (tmp_path / "orders_api.py").write_text(example("python"))
    catalog = load(PluginSettings(str(tmp_path)))
    source = catalog.find("orders-api", ("source",))
    assert {key.name for key in source.keys} == {"url", "topic", "token", "page.size"}
    mask = catalog.find("mask-card", ("transformation",)).cls(Config())
    assert mask.apply(Record("t", {"card": "1234567812345678"})).value == {"card": "****5678"}


@pytest.mark.parametrize("name", re.findall(r"^\| `(datagen|files-\w+)`", PAGE, re.MULTILINE))
def test_the_keys_of_connectors_are_there(name: str) -> None:
    row = re.search(rf"^\| `{name}` \|(.*)\|$", PAGE, re.MULTILINE)
    assert row is not None
    known = {key.name for key in load(PluginSettings()).find(name, ("source", "sink")).keys}
    assert set(re.findall(r"`([\w.]+)`", row[1])) <= known


def test_the_commands_are_those_of_the_command_line() -> None:
    from argparse import ArgumentParser

    from barnabas.cli.connect.connect import configure

    parser = ArgumentParser()
    configure(parser)
    (actions,) = parser._subparsers._group_actions  # type: ignore[union-attr]
    verbs = set(actions.choices or ())
    rows = re.search(r"## Commands\n\n(.*?)\n\n## ", PAGE, re.DOTALL)
    assert rows is not None
    named = {
        cell.split()[0] for line in rows[1].splitlines()[2:] for cell in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    assert named == verbs
