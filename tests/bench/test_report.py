"""Figures become a table in which more is better, and the broker's cost is read from the whole process tree."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.measure import anonymous_bytes, process_tree, summarise
from bench.report import ratio, table, verdict, write_csv
from bench.run import Row
from bench.workloads import WORKLOADS, Workload

THROUGHPUT = Workload("bulk", "", "raw-produce", "megabytes_per_second", "MB/s")
LATENCY = Workload("waiting", "", "raw-e2e", "p99_us", "µs", more_is_better=False)


def test_more_is_better_in_every_ratio() -> None:
    assert ratio(THROUGHPUT, 200.0, 100.0) == 2.0
    assert ratio(LATENCY, 200.0, 100.0) == 0.5


@pytest.mark.parametrize(("value", "word"), [(0.94, "behind"), (0.95, "level"), (1.05, "level"), (1.06, "ahead")])
def test_a_small_difference_is_level(value: float, word: str) -> None:
    assert verdict(value) == word


def test_the_median_and_the_spread_of_several_runs() -> None:
    summary = summarise([10.0, 12.0, 8.0])
    assert (summary.median, summary.spread, summary.count) == (10.0, 0.4, 3)


def test_a_failed_row_says_why_and_the_others_stay(tmp_path: Path) -> None:
    rows = [
        Row(THROUGHPUT, "kafka", 1, 100.0, figures={"megabytes_per_second": 100.0}),
        Row(THROUGHPUT, "barnabas", 1, 150.0, figures={"megabytes_per_second": 150.0}),
        Row(LATENCY, "kafka", 1, 80.0),
        Row(LATENCY, "barnabas", 1, None, failure="it did not start"),
    ]
    text = table(rows, ["kafka", "barnabas"])
    assert "1.50 ahead" in text
    assert "waiting, barnabas: it did not start" in text
    write_csv(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        assert [row["failure"] for row in csv.DictReader(file)] == ["", "", "", "it did not start"]


def test_workload_names_are_unique() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(names) == len(set(names))


def test_children_count_as_the_broker() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        tree = process_tree(os.getpid())
        assert tree[0] == os.getpid()
        assert child.pid in tree
        assert anonymous_bytes(tree) > anonymous_bytes([os.getpid()]) > 0
    finally:
        child.communicate()
