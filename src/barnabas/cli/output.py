"""What commands print: a table for people, JSON for programs.

rich is imported only here and only when a table is printed. Records have formats of their own, see
``record_format.py``.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def add_output(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to print the answer")


def print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """On a terminal it fits the width, with long cells folded. Into a pipe it is as wide as it must be."""
    texts = [[str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        _print_aligned(columns, texts, right)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in texts:
        table.add_row(*row)
    Console(markup=False, highlight=False, emoji=False).print(table)


def _print_aligned(columns: Sequence[str], rows: list[list[str]], right: Sequence[str]) -> None:
    """A program that reads this needs no colours and no folding, so rich is not worth its start-up time."""
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]
    for row in [list(columns), *rows]:
        cells = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        )
        print("  ".join(cells).rstrip())


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one pair a line."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
