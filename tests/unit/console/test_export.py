"""Cells of a CSV export are data for a spreadsheet, never formulas."""

from __future__ import annotations

import csv

import pytest

from barnabas.console.api.export import _csv_line


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "\r=1+1"])
def test_a_cell_that_begins_like_a_formula_gets_a_quote(text: str) -> None:
    row = {"partition": 0, "offset": 7, "timestamp": -1, "key": text, "value": text, "headers": [["n", text]]}
    ((*numbers, key, value, headers),) = csv.reader(_csv_line(row).decode().splitlines(keepends=True))
    assert (key, value) == (f"'{text}", f"'{text}")
    assert numbers == ["0", "7", "-1"]
    assert headers.startswith("{")


def test_other_cells_are_unchanged() -> None:
    row = {"partition": 0, "offset": 7, "timestamp": 5, "key": None, "value": 'a "b", =c', "headers": []}
    assert list(csv.reader([_csv_line(row).decode()])) == [["0", "7", "5", "", 'a "b", =c', "{}"]]
