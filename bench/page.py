"""The page: the part of `docs/PERFORMANCE.md` that a run of the harness writes, and its picture.

Everything comes from the results file, so the page can be made again without a run and a test can tell that it was.
What is written by hand stands outside of the two marks. Called by the command line.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Summary
from bench.picture import draw
from bench.report import Line, judgement, lines_of, notes_of, number, ratio_text, spread_text
from bench.results import load
from bench.run import Row
from bench.workloads import SECTIONS

_DOCS = Path(__file__).parents[1] / "docs"
RESULTS = _DOCS / "performance.csv"
PAGE = _DOCS / "PERFORMANCE.md"
PICTURE = _DOCS / "performance.svg"
BEGINS, ENDS = "<!-- bench begins: made by `python -m bench docs` -->", "<!-- bench ends -->"
_OURS, _TWO, _MOCK = "barnabas", "barnabas-2", "mock"
_HEAD = ("workload", "unit", "Kafka", "Barnabas", "ratio", "", "two brokers", "ratio", "spread", "pairs")


def write_docs() -> None:
    rows, notes = load(RESULTS)
    PAGE.write_text(with_tables(PAGE.read_text(), tables(rows, notes)))
    draw(lines_of(rows), PICTURE)


def with_tables(page: str, text: str) -> str:
    """The page with everything between the two marks replaced."""
    before, rest = page.split(BEGINS, 1)
    _, after = rest.split(ENDS, 1)
    return f"{before}{BEGINS}\n\n{text}\n\n{ENDS}{after}"


def tables(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """A table per section, and what they come to."""
    lines = lines_of(rows)
    parts = [f"{' '.join(f'{note}.' for note in notes)} {_noise(rows)}", _summary(lines)]
    for section, title in SECTIONS.items():
        of_section = [line for line in lines if line.workload.section == section]
        if of_section:
            parts.append(f"### {title}")
            parts.append("\n".join(_table(of_section)))
    parts.append("\n".join(f"- {note.splitlines()[0]}" for note in notes_of(rows)))
    return "\n\n".join(part for part in parts if part)


def _summary(lines: Sequence[Line]) -> str:
    words = [judgement(line, _OURS) for line in lines]
    ahead, level, behind = (words.count(word) for word in ("ahead", "level", "behind"))
    return (
        f"Of {ahead + level + behind} figures Barnabas is ahead in {ahead}, level in {level} and behind in {behind}. "
        "Figures are medians; the spread is half of what lies between the smallest and the largest run, of Kafka and "
        "of Barnabas. More is better in every ratio, and from 0.95 to 1.05 it is level."
    )


def _noise(rows: Sequence[Row]) -> str:
    """What the machine did for others meanwhile."""
    cores = [row.figures["others_cores"] for row in rows if "others_cores" in row.figures]
    if not cores:
        return ""
    middle, most = statistics.median(cores), max(cores)
    return f"While these runs went on, other programs used {middle:.2f} cores in the median run and {most:.1f} at most."


def _table(lines: Sequence[Line]) -> list[str]:
    rows = [_row(line) for line in lines]
    mocks = [line for line in lines if _MOCK in line.summaries]
    for line in mocks:
        cell = number(line.summaries[_MOCK].median)
        rows.append([f"{line.name}, librdkafka's mock", line.figure.unit, cell, *[""] * (len(_HEAD) - 3)])
    return [_markdown(_HEAD), _markdown(["---"] * len(_HEAD)), *map(_markdown, rows)]


def _row(line: Line) -> list[str]:
    name = f"… {line.figure.name}" if line.figure.name else f"**{line.workload.name}**: {line.workload.factor}"
    kafka, ours, two = (line.summaries.get(peer) for peer in ("kafka", _OURS, _TWO))
    spreads = " ".join(spread_text(each) for each in (kafka, ours) if each is not None)
    pairs = str(min(each.count for each in (kafka, ours) if each is not None)) if kafka or ours else ""
    verdict = judgement(line, _OURS)
    return [
        name,
        line.figure.unit,
        _cell(line, "kafka", kafka),
        _cell(line, _OURS, ours),
        ratio_text(line.ratio(_OURS)),
        f"**{verdict}**" if verdict == "behind" else verdict,
        _cell(line, _TWO, two),
        ratio_text(line.ratio(_TWO)),
        spreads,
        pairs,
    ]


def _cell(line: Line, peer: str, summary: Summary | None) -> str:
    if summary is not None:
        return number(summary.median)
    return "failed" if peer in line.failures else ""


def _markdown(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
