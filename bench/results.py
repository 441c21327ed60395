"""The file that results accumulate in: a line per run, with every figure that its client gave.

A run of some rows adds to what is there, so that a long comparison can be made in parts; rows that are run afresh
replace their older runs. The first lines say on what machine and with what versions. `bench.page` makes the page and
the picture from this file and from nothing else.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from bench.run import Row
from bench.workloads import WORKLOADS

_COLUMNS = ("workload", "peer", "pair", "value", "unit", "failure", "figures")
_NOTE = "# "
_FIGURES_KEPT = 5


def save(path: Path, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    """Writes all rows; each figure keeps as many digits as mean something."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        file.writelines(f"{_NOTE}{note}\n" for note in notes)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in rows:
            figures = {name: _rounded(value) for name, value in sorted(row.figures.items())}
            value = "" if row.value is None else _rounded(row.value)
            head = [row.workload.name, row.peer, row.round, value, row.workload.unit, row.failure]
            writer.writerow([*head, json.dumps(figures)])


def load(path: Path) -> tuple[list[Row], list[str]]:
    """The rows of workloads that there still are, and the notes."""
    if not path.exists():
        return [], []
    known = {workload.name: workload for workload in WORKLOADS}
    lines = path.read_text().splitlines(keepends=True)
    notes = [line[len(_NOTE) :].strip() for line in lines if line.startswith(_NOTE)]
    rows = [
        Row(
            known[line["workload"]],
            line["peer"],
            int(line["pair"]),
            float(line["value"]) if line["value"] else None,
            line["failure"],
            json.loads(line["figures"]),
        )
        for line in csv.DictReader(line for line in lines if not line.startswith(_NOTE))
        if line["workload"] in known
    ]
    return rows, notes


def next_pair(rows: Sequence[Row]) -> dict[tuple[str, str], int]:
    """How many pairs each row of each peer has already."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.workload.name, row.peer)
        counts[key] = max(counts.get(key, 0), row.round)
    return counts


def _rounded(value: float) -> float:
    return float(f"{value:.{_FIGURES_KEPT}g}")
