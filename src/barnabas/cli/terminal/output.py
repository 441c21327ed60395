"""What commands print: a table for people; JSON, YAML or bare cells for programs.

rich is imported only here and only when a table is printed on a terminal. Records have formats of their own, see
``record_format.py``; how YAML is written is in ``yaml_text.py``.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

TABLES: Final = ("table", "wide")
FORMS: Final = (*TABLES, "json", "yaml")
NOBODY: Final = "-"  # a cell with nothing to say
GAP: Final = "  "  # between cells


def add_output(parser: ArgumentParser) -> None:
    if "-o" not in parser._option_string_actions:  # where -o is an offset, the long name remains
        parser.add_argument("-o", "--output", choices=FORMS, default="table", help="how to print the answer")
    else:
        parser.add_argument("--output", choices=FORMS, default="table", help="how to print the answer")
    parser.add_argument("--no-headers", action="store_true", help="tables without their first line")


def is_table(arguments: Namespace) -> bool:
    return arguments.output in TABLES


def print_value(arguments: Namespace, value: Any) -> None:
    if arguments.output == "yaml":
        from barnabas.cli.terminal.yaml_text import yaml_text

        print(yaml_text(value), end="")
    else:
        import json

        print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False, default=str))


def print_rows(
    arguments: Namespace,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> None:
    """A table, or an object to each row; the names in there are those of the columns unless others are given."""
    if is_table(arguments):
        print_table(columns, rows, right=right, arguments=arguments)
        return
    keys = names or [column.lower().replace(" ", "_").replace("-", "_") for column in columns]
    print_value(arguments, [dict(zip(keys, row, strict=True)) for row in rows])


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    arguments: Namespace | None = None,
) -> None:
    """On a terminal it fits the width, with long cells folded. Into a pipe, or asked to, it is as wide as need be."""
    has_headers = arguments is None or not arguments.no_headers
    texts = [[str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty() or getattr(arguments, "output", None) == "wide":
        _print_aligned(columns, texts, right, has_headers=has_headers)
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False, emoji=False)
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=has_headers)
    is_spared = _spares_numbers(columns, texts, right, console.width)
    for column in columns:
        is_number = column in right
        table.add_column(
            column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number and is_spared
        )
    for row in texts:
        table.add_row(*row)
    console.print(table)


def _spares_numbers(columns: Sequence[str], rows: list[list[str]], right: Sequence[str], width: int) -> bool:
    """Whether numbers can stay in one piece, with names folded beside them as narrow as their headers."""
    cells = zip(columns, *rows, strict=True)
    needed = (max(map(len, each)) if each[0] in right else len(each[0]) for each in cells)
    return sum(needed) + len(GAP) * (len(columns) - 1) <= width


def _print_aligned(columns: Sequence[str], rows: list[list[str]], right: Sequence[str], *, has_headers: bool) -> None:
    """A program that reads this needs no colours and no folding, so rich is not worth its start-up time."""
    lines = [list(columns), *rows] if has_headers else rows
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for row in lines:
        cells = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        )
        print(GAP.join(cells).rstrip())


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one pair a line."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        print_sentence(f"{name:<{width}}{GAP}{value}", indent=width + len(GAP))


def print_sentence(text: str, *, indent: int = 0) -> None:
    """A line; on a terminal that is narrower it goes on below, behind ``indent``."""
    import shutil

    width = shutil.get_terminal_size().columns
    if len(text) <= width or width <= 2 * indent or not sys.stdout.isatty():
        print(text)
        return
    import textwrap

    head, rest = text[:indent], text[indent:]
    for line in textwrap.wrap(rest, width - indent, break_on_hyphens=False):
        print(f"{head}{line}")
        head = " " * indent


def silence() -> None:
    """Whoever read our output has seen enough; the interpreter must not complain about it when it ends."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
