"""The page about the demo: its blocks run, its files exist, and its connectors are valid."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from barnabas.cli.connect.connector_files import read_connectors
from barnabas.connect.catalog import PluginSettings, load
from barnabas.connect.connector_config import validate
from barnabas.streams.host.code import load_module

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "DEMO.md"
EXAMPLE = ROOT / "examples" / "shop"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_test_of_the_page_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shop", load_module(EXAMPLE / "shop.py"))
    exec(compile(blocks()[-1], str(PAGE), "exec"), {})


def test_the_page_quotes_the_application() -> None:
    source = (EXAMPLE / "shop.py").read_text()
    for paragraph in blocks()[0].strip().split("\n\n"):
        first, *rest = (line for line in paragraph.splitlines() if line)
        assert first in source
        for line in rest:
            assert line in source


def test_the_connectors_of_the_demo_are_valid() -> None:
    catalog = load(PluginSettings())
    for each in read_connectors(EXAMPLE / "connectors.yaml"):
        config = {key: re.sub(r"\$\{env:\w+\}", "5432", value) for key, value in each.config.items()}
        answer = validate(catalog, config)
        assert answer["error_count"] == 0, [found["value"]["errors"] for found in answer["configs"]]


def test_the_links_of_the_page_lead_to_files() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link
