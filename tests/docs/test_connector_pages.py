"""The pages on databases: their connectors are valid, and the keys and the query that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from barnabas.cli.connect.connector_files import read_connectors
from barnabas.connect.catalog import PluginSettings, load
from barnabas.connect.connector_config import validate

PAGES = Path(__file__).parents[2] / "docs" / "connect"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["postgres.md", "sql.md", "iceberg.md"])
def test_the_connectors_of_a_page_are_valid(page: str, tmp_path: Path) -> None:
    (text,) = blocks(page, "yaml")
    path = tmp_path / "connectors.yaml"
    path.write_text(text)
    for each in read_connectors(path):
        answer = validate(load(PluginSettings()), each.config)
        assert answer["error_count"] == 0, [found["value"]["errors"] for found in answer["configs"]]


@pytest.mark.parametrize(
    ("page", "plugin"),
    [("postgres.md", "postgres-source"), ("sql.md", "sql-sink"), ("iceberg.md", "iceberg-sink")],
)
def test_the_keys_in_tables_exist(page: str, plugin: str) -> None:
    known = {key.name for key in load(PluginSettings()).find(plugin, ("source", "sink")).keys}
    rows = re.findall(r"^\| (`(?:slot|insert|pk|auto|delete)\.[^|]*)\|", (PAGES / page).read_text(), re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`([\w.]+)`", row)} <= known


def test_the_query_gives_the_latest_rows() -> None:
    (query,) = blocks("iceberg.md", "sql")
    columns = {"id": [1, 1, 2, 2], "item": ["a", "b", "c", "c"], "_op": ["c", "u", "c", "d"], "_offset": [0, 3, 1, 2]}
    changes = pa.table(columns)
    assert changes.num_rows == 4
    assert duckdb.sql(query).fetchall() == [(1, "b", "u", 3)]
