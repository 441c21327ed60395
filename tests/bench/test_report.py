"""Figures become a table in which more is better, and the broker's cost is read from the whole process tree."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.measure import anonymous_bytes, process_tree, summarise
from bench.report import is_error, lines_of, notes_of, ratio, table, verdict
from bench.results import load, next_pair, save
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


def test_a_failed_row_says_why_and_the_others_stay() -> None:
    rows = [
        Row(THROUGHPUT, "kafka", 1, 100.0, figures={"megabytes_per_second": 100.0}),
        Row(THROUGHPUT, "barnabas", 1, 150.0, figures={"megabytes_per_second": 150.0}),
        Row(LATENCY, "kafka", 1, 80.0),
        Row(LATENCY, "barnabas", 1, None, failure="it did not start"),
    ]
    text = table(rows, ["kafka", "barnabas"])
    assert "1.50 ahead" in text
    assert "waiting, barnabas (1 of 1 runs): it did not start" in text


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(Row(LATENCY, "kafka", 1, None, "it took 200 of 1000 requests/s"), False, id="Kafka is too slow"),
        pytest.param(Row(LATENCY, "kafka", 1, None, "no java", has_run=False), True, id="Kafka was never asked"),
        pytest.param(Row(LATENCY, "barnabas", 1, None, "it took 200 of 1000 requests/s"), True, id="we are too slow"),
        pytest.param(Row(LATENCY, "barnabas-2", 1, None, "it died"), True, id="two of us die"),
        pytest.param(Row(LATENCY, "barnabas", 1, 80.0), False, id="a figure"),
    ],
)
def test_only_our_failures_and_the_harness_s_fail_a_run(row: Row, expected: bool) -> None:
    assert is_error(row) is expected


def test_a_row_that_wanted_a_memory_group_and_had_none_says_so() -> None:
    cold = replace(THROUGHPUT, name="cold", memory_bytes=2 << 30)
    rows = [
        Row(cold, "kafka", 1, 100.0, figures={"memory_group_megabytes": 2147.5}),
        Row(cold, "barnabas", 1, 100.0, figures={"memory_group_megabytes": 0.0}),
        Row(cold, "barnabas", 2, 100.0, figures={"memory_group_megabytes": 0.0}),
        Row(THROUGHPUT, "barnabas", 1, 100.0),
    ]
    (note,) = notes_of(rows)
    assert note.startswith("cold, barnabas (2 of 2 runs): not in a memory group")
    assert note in table(rows, ["kafka", "barnabas"])


def test_results_accumulate_in_their_file(tmp_path: Path) -> None:
    path, workload = tmp_path / "rows.csv", WORKLOADS[0]
    rows = [
        Row(workload, "kafka", 1, 3.5, figures={"ready_seconds": 3.5}),
        Row(workload, "barnabas", 1, None, failure="it did not start,\nnot at all"),
    ]
    save(path, rows, ["a machine", "versions"])
    again, notes = load(path)
    assert (again, notes) == (rows, ["a machine", "versions"])
    assert next_pair(again) == {(workload.name, "kafka"): 1, (workload.name, "barnabas"): 1}
    save(path, [*again, Row(workload, "kafka", 2, 4.5)], notes)
    assert lines_of(load(path)[0])[0].summaries["kafka"].median == 4.0


def test_where_the_client_is_the_bottleneck_the_broker_is_judged_by_its_cpu() -> None:
    workload = next(workload for workload in WORKLOADS if workload.is_client_bound)
    rows = [
        Row(workload, peer, 1, 100.0, figures={"cpu_seconds_per_gigabyte": spent})
        for peer, spent in (("kafka", 8.0), ("barnabas", 2.0))
    ]
    throughput, spent = table(rows, ["kafka", "barnabas"]).splitlines()[1:]
    assert "client-bound" in throughput
    assert "4.00 ahead" in spent


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
