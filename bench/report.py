"""Turns rows into a plain text table and a CSV file.

The ratio is always "more is better": times, memory and latencies are turned round. From 0.95 to 1.05 it is called
level. The CSV file has a line per run, with all figures that the client gave.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Summary, summarise
from bench.run import Row
from bench.workloads import Workload

LEVEL_MIN, LEVEL_MAX = 0.95, 1.05


def write_csv(rows: Sequence[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = sorted({name for row in rows for name in row.figures})
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["workload", "peer", "round", "metric", "value", "unit", "failure", *names])
        for row in rows:
            figures = [row.figures.get(name, "") for name in names]
            workload = row.workload
            head = [workload.name, row.peer, row.round, workload.metric, row.value, workload.unit, row.failure]
            writer.writerow([*head, *figures])


def ratio(workload: Workload, ours: float, theirs: float) -> float:
    """How many times better `ours` is: above one is better, whatever the unit."""
    over, under = (ours, theirs) if workload.more_is_better else (theirs, ours)
    return over / under if under else float("inf")


def verdict(value: float) -> str:
    return "level" if LEVEL_MIN <= value <= LEVEL_MAX else "ahead" if value > LEVEL_MAX else "behind"


def table(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """One line per workload: median and spread of every peer, and the last peer's ratio to the first."""
    workloads = list(dict.fromkeys(row.workload.name for row in rows))
    lines = [["workload", "unit", *[name for peer in peers for name in (peer, "±", "CPU s/GB", "others")], "ratio"]]
    failures: list[str] = []
    for name in workloads:
        of_workload = [row for row in rows if row.workload.name == name]
        workload = of_workload[0].workload
        cells, medians = [], []
        for peer in peers:
            of_peer = [row for row in of_workload if row.peer == peer]
            summary = _summary(of_peer)
            medians.append(summary)
            cells += _cells(of_peer, summary)
            failures += [f"{name}, {peer}: {row.failure}" for row in of_peer if row.failure][:1]
        cells.append(_ratio_cell(workload, medians))
        lines.append([name, workload.unit, *cells])
    return "\n".join([*_align(lines), *([""] if failures else []), *failures])


def _summary(rows: Sequence[Row]) -> Summary | None:
    values = [row.value for row in rows if row.value is not None]
    return summarise(values) if values else None


def _cells(rows: Sequence[Row], summary: Summary | None) -> list[str]:
    if summary is None:
        return ["failed" if rows else "-", "", "", ""]
    per_gigabyte = [
        row.figures["cpu_seconds_per_gigabyte"] for row in rows if "cpu_seconds_per_gigabyte" in row.figures
    ]
    others = max((row.figures.get("others_cores", 0.0) for row in rows), default=0.0)
    return [
        number(summary.median),
        f"{summary.spread * 50:.0f}%",
        number(summarise(per_gigabyte).median) if per_gigabyte else "",
        f"{others:.1f}",
    ]


def _ratio_cell(workload: Workload, medians: Sequence[Summary | None]) -> str:
    first, last = medians[0], medians[-1]
    if len(medians) < 2 or first is None or last is None:
        return ""
    value = ratio(workload, last.median, first.median)
    return f"{value:.2f} {verdict(value)}"


def number(value: float) -> str:
    """Three figures that count, thousands with commas."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _align(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
