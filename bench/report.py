"""Turns rows into lines of figures, and lines into a plain text table.

The ratio is always "more is better": times, memory and latencies are turned round. From 0.95 to 1.05 it is called
level. `bench.page` prints the same lines for the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.measure import Summary, summarise
from bench.run import Row
from bench.workload import Figure, Workload

LEVEL_MIN, LEVEL_MAX = 0.95, 1.05
BASELINE = "kafka"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of one workload: the middle of every peer's runs."""

    workload: Workload
    figure: Figure
    summaries: dict[str, Summary]
    failures: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.workload.name}: {self.figure.name}" if self.figure.name else self.workload.name

    def ratio(self, peer: str) -> float | None:
        """How many times better than Kafka this peer is."""
        if peer not in self.summaries or BASELINE not in self.summaries or peer == BASELINE:
            return None
        return ratio(self.figure, self.summaries[peer].median, self.summaries[BASELINE].median)


def lines_of(rows: Sequence[Row]) -> list[Line]:
    """Every figure of every workload that was run, in the order in which they came."""
    lines = []
    for name in dict.fromkeys(row.workload.name for row in rows):
        of_workload = [row for row in rows if row.workload.name == name]
        workload = of_workload[0].workload
        failures = {row.peer: row.failure for row in of_workload if row.failure}
        for figure in workload.figures:
            summaries = {}
            for peer in dict.fromkeys(row.peer for row in of_workload):
                values = [_value(row, figure) for row in of_workload if row.peer == peer]
                if known := [value for value in values if value is not None]:
                    summaries[peer] = summarise(known)
            lines.append(Line(workload, figure, summaries, failures))
    return lines


def is_error(row: Row) -> bool:
    """Kafka is what is compared with: a row that it cannot do is told and no error. That it was never asked is one."""
    return bool(row.failure) and (row.peer != BASELINE or not row.has_run)


def notes_of(rows: Sequence[Row]) -> list[str]:
    """What a reader has to know of rows: which failed and why, and which ran otherwise than they say."""
    return [*_notes(rows, lambda row: row.failure), *_notes(rows, _missing_group)]


def _notes(rows: Sequence[Row], reason: Callable[[Row], str]) -> list[str]:
    """One for each row and peer, however often it happened: the reason of the first time stands for all."""
    notes = []
    for name, peer in dict.fromkeys((row.workload.name, row.peer) for row in rows):
        runs = [row for row in rows if (row.workload.name, row.peer) == (name, peer)]
        if reasons := [why for why in map(reason, runs) if why]:
            notes.append(f"{name}, {peer} ({len(reasons)} of {len(runs)} runs): {reasons[0]}")
    return notes


def _missing_group(row: Row) -> str:
    if not row.workload.memory_bytes or row.failure or row.figures.get("memory_group_megabytes"):
        return ""
    return "not in a memory group; its log was taken out of the page cache instead"


def _value(row: Row, figure: Figure) -> float | None:
    return row.value if not figure.name else row.figures.get(figure.metric)


def ratio(figure: Figure | Workload, ours: float, theirs: float) -> float:
    """How many times better `ours` is: above one is better, whatever the unit."""
    over, under = (ours, theirs) if figure.more_is_better else (theirs, ours)
    return over / under if under else float("inf")


def verdict(value: float) -> str:
    return "level" if LEVEL_MIN <= value <= LEVEL_MAX else "ahead" if value > LEVEL_MAX else "behind"


def judgement(line: Line, peer: str) -> str:
    """A word, or why there is none."""
    value = line.ratio(peer)
    if value is None:
        return ""
    return verdict(value) if line.figure.is_judged else "client-bound"


def ratio_text(value: float | None) -> str:
    if value is None:
        return ""
    return "∞" if value == float("inf") else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def spread_text(summary: Summary) -> str:
    """Half of what lies between the smallest and the largest; one run has no spread."""
    if summary.count == 1:
        return "–"
    return f"±{summary.spread * 50:.0f}%"


def table(rows: Sequence[Row], peers: Sequence[str]) -> str:
    """One line per figure: median and spread of every peer, and the ratio to Kafka of those beside it."""
    ours = [peer for peer in peers if peer != BASELINE]
    head = [
        ["workload", "unit", *[name for peer in peers for name in (peer, "±")], *[f"{peer}/kafka" for peer in ours]]
    ]
    lines = lines_of(rows)
    body = []
    for line in lines:
        cells = []
        for peer in peers:
            summary = line.summaries.get(peer)
            missing = "failed" if peer in line.failures else "-"
            cells += [number(summary.median), spread_text(summary)] if summary else [missing, ""]
        cells += [f"{ratio_text(line.ratio(peer))} {judgement(line, peer)}".strip() for peer in ours]
        body.append([line.name, line.figure.unit, *cells])
    told = notes_of(rows)
    return "\n".join([*_align(head + body), *([""] if told else []), *told])


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
