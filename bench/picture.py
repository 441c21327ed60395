"""The picture of a comparison: how many times better than Apache Kafka each row is, on a scale of powers of two.

A bar to the right of the middle line is ahead, one to the left behind; a ring is what two brokers reach. It is drawn
with matplotlib from the lines of the report, as SVG for the documentation or as PNG to look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing

from bench.report import LEVEL_MAX, LEVEL_MIN, Line, judgement, ratio_text

_COLOURS = {"ahead": "#2f7d5b", "level": "#8a8f98", "behind": "#c2553a"}
_RING = "#1f3a5f"
_RATIO_MAX = 16.0
_TICKS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_HEIGHT_OF_LINE = 0.24


def draw(lines: Sequence[Line], path: Path) -> None:
    """All lines that are judged, in the order of the report."""
    judged = [line for line in lines if line.figure.is_judged and line.ratio("barnabas") is not None]
    # What a picture is made of must not depend on when or where it is made.
    with mpl.rc_context({"svg.hashsalt": "barnabas", "svg.fonttype": "none", "font.family": "DejaVu Sans"}):
        drawing = Drawing(figsize=(9, 1.4 + _HEIGHT_OF_LINE * max(len(judged), 1)))
        axes = drawing.add_subplot()
        for place, line in enumerate(judged):
            _bar(axes, place, line)
        _frame(axes, judged)
        drawing.tight_layout()
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        drawing.savefig(path, metadata=metadata, dpi=110)


def _bar(axes: mpl.axes.Axes, place: int, line: Line) -> None:
    value = line.ratio("barnabas")
    assert value is not None
    length = log2(_bounded(value))
    axes.barh(place, length, height=0.68, color=_COLOURS[judgement(line, "barnabas")], zorder=2)
    is_right = length >= 0
    axes.text(
        length + (0.06 if is_right else -0.06),
        place,
        ratio_text(value),
        va="center",
        ha="left" if is_right else "right",
        fontsize=7.5,
        color="#333333",
    )
    two = line.ratio("barnabas-2")
    if two is not None:
        axes.plot(log2(_bounded(two)), place, "o", markersize=4.5, mfc="white", mec=_RING, mew=1.1, zorder=3)


def _frame(axes: mpl.axes.Axes, lines: Sequence[Line]) -> None:
    axes.set_yticks(range(len(lines)), [f"{line.name}  ({line.figure.unit})" for line in lines], fontsize=7.5)
    axes.invert_yaxis()
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xticks([log2(tick) for tick in _TICKS], [f"{tick:g}×" for tick in _TICKS], fontsize=8)
    axes.set_xlim(log2(_TICKS[0]) - 0.4, log2(_RATIO_MAX) + 0.6)
    axes.axvspan(log2(LEVEL_MIN), log2(LEVEL_MAX), color="#dddddd", zorder=0)
    axes.axvline(0, color="#555555", linewidth=0.8, zorder=1)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.6, zorder=0)
    axes.tick_params(length=0)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title(
        "Barnabas beside Apache Kafka on the same machine: how many times better (one broker; ○ two brokers)",
        fontsize=9,
        loc="right",
        color="#333333",
    )


def _bounded(value: float) -> float:
    return min(max(value, _TICKS[0]), _RATIO_MAX)
