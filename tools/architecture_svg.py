"""Draws ``docs/architecture.svg``: the packages in their rows, and the path of a produce, a fetch and a pipeline.

The rows come from ``tools/layers.py``, and the paths from the numbered lists of ``docs/ARCHITECTURE.md``, which tests
compare with the code. ``make docs`` writes the picture.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from tools.layers import CLIENT, SERVER, SHARED, TOP, Row

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "barnabas"
PAGE: Final = ROOT / "docs" / "ARCHITECTURE.md"
PATHS: Final = ("produce", "fetch", "pipeline")

WIDTH: Final = 1120
MARGIN: Final = 20
GAP: Final = 10
ROW_HEIGHT: Final = 34
STEP_HEIGHT: Final = 52
STEPS_PER_LINE: Final = 4
COLOURS: Final = {"shared": "#e8eef7", "server": "#e3f3e6", "client": "#fdf0dc", "top": "#f0e6f6"}
STYLE: Final = """\
text { font: 13px sans-serif; fill: #1f2328; }
.small { font-size: 11px; fill: #57606a; }
.title { font-size: 15px; font-weight: bold; }
rect { stroke: #8c959f; stroke-width: 1; rx: 4; }
path { stroke: #57606a; fill: none; marker-end: url(#arrow); }
@media (prefers-color-scheme: dark) { .page { fill: #ffffff; } }
"""


ARROW: Final = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="fill: #57606a; stroke: none; marker-end: none"/></marker></defs>'
)
LEGEND: Final = "green: server · orange: clients · blue: shared · violet: command line and test support"


class Step(NamedTuple):
    module: str  # as "storage/log.py"
    function: str

    @property
    def package(self) -> str:
        return self.module.partition("/")[0]


def steps(page: str, what: str) -> list[Step]:
    """Return the functions that the numbered list about a path names, in order."""
    section = page.split(f"## The path of a {what}\n")[1].split("\n## ")[0]
    items = re.findall(r"^\d+\. (.*?)(?=^\d+\. |\Z)", section, re.DOTALL | re.MULTILINE)
    return [Step(*found) for item in items for found in re.findall(r"`([\w/]+\.py)::([\w.]+)`", item)[:1]]


def kind_of(package: str) -> str:
    for kind, rows in (("shared", SHARED), ("server", SERVER), ("client", CLIENT)):
        if any(package in row for row in rows):
            return kind
    return "top"


class Drawing:
    """Collects the elements of a picture from the top downwards."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.y = MARGIN

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> None:
        self._parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" style="fill: {COLOURS[colour]}"/>'
        )

    def arrow(self, points: list[tuple[float, float]]) -> None:
        way = " L".join(f"{x:g} {y:g}" for x, y in points)
        self._parts.append(f'<path d="M{way}"/>')

    def title(self, text: str) -> None:
        self.text(MARGIN, self.y + 16, text, "title", "start")
        self.y += 30

    def row(self, packages: Row, x: float, width: float, y: float) -> None:
        """Draw packages side by side; those that do not exist yet are left out."""
        existing = [package for package in packages if (SOURCE / package / "__init__.py").exists()]
        each = (width - GAP * (len(existing) - 1)) / max(len(existing), 1)
        for index, package in enumerate(existing):
            left = x + index * (each + GAP)
            self.box(left, y, each, ROW_HEIGHT, kind_of(package))
            self.text(left + each / 2, y + 21, package)

    def path(self, what: str, found: list[Step]) -> None:
        self.title(f"The path of a {what}")
        width = (WIDTH - 2 * MARGIN - (STEPS_PER_LINE - 1) * 3 * GAP) / STEPS_PER_LINE
        for index, step in enumerate(found):
            line, column = divmod(index, STEPS_PER_LINE)
            x, y = MARGIN + column * (width + 3 * GAP), self.y + line * (STEP_HEIGHT + 2 * GAP)
            self.box(x, y, width, STEP_HEIGHT, kind_of(step.package))
            self.text(x + width / 2, y + 21, f"{index + 1}  {step.module}")
            self.text(x + width / 2, y + 39, step.function, "small")
            if index + 1 < len(found):
                middle = y + STEP_HEIGHT / 2
                if column + 1 < STEPS_PER_LINE:
                    self.arrow([(x + width, middle), (x + width + 3 * GAP, middle)])
                else:
                    below, first = y + STEP_HEIGHT + GAP, MARGIN + width / 2
                    self.arrow([(x + width / 2, y + STEP_HEIGHT), (x + width / 2, below), (first, below),
                                (first, below + GAP)])  # fmt: skip
        self.y += (len(found) + STEPS_PER_LINE - 1) // STEPS_PER_LINE * (STEP_HEIGHT + 2 * GAP) + GAP

    def svg(self) -> str:
        height = self.y + MARGIN
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">',
                f"<style>\n{STYLE}</style>",
                ARROW,
                f'<rect class="page" width="{WIDTH}" height="{height:g}" style="fill: #ffffff; stroke: none"/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )


def packages(drawing: Drawing) -> None:
    """Draw the rows: the server's packages to the left, the clients' to the right, shared ones across both."""
    drawing.title("The packages: each imports only packages below it")
    whole = WIDTH - 2 * MARGIN
    half = (whole - 2 * GAP) / 2
    drawing.row(TOP, MARGIN, whole, drawing.y)
    drawing.y += ROW_HEIGHT + GAP
    lines = max(len(SERVER), len(CLIENT))
    for rows, x in ((SERVER, MARGIN), (CLIENT, MARGIN + half + 2 * GAP)):
        for index, row in enumerate(reversed(rows)):
            drawing.row(row, x, half, drawing.y + (lines - len(rows) + index) * (ROW_HEIGHT + GAP))
    drawing.y += lines * (ROW_HEIGHT + GAP)
    for row in reversed(SHARED):
        drawing.row(row, MARGIN, whole, drawing.y)
        drawing.y += ROW_HEIGHT + GAP
    drawing.text(MARGIN, drawing.y + 8, LEGEND, "small", "start")
    drawing.y += 30


def picture(page: str) -> str:
    """Return the SVG for the text of ARCHITECTURE.md."""
    drawing = Drawing()
    packages(drawing)
    for what in PATHS:
        drawing.path(what, steps(page, what))
    return drawing.svg()
