"""What the page on durability promises is shown: every cell with a promise has tests, and they are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "DURABILITY.md"
PROMISE = re.compile(r"nothing( \w+)* is lost|nothing that was \w+ is gone|stays sound|seen whole")
TABLES = 2  # those whose cells have numbers; the cells of the third name their tests themselves


def sections() -> list[str]:
    return re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1 : 1 + TABLES]


def promises(section: str) -> list[tuple[str, str]]:
    """Cells that promise something, each with the first cell of its row."""
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    return [(row[0].strip(), cell.strip()) for row in rows for cell in row[1:] if PROMISE.search(cell)]


def named(section: str) -> dict[str, list[str]]:
    """The tests of each number."""
    items = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^$)", section, flags=re.MULTILINE | re.DOTALL)
    return {number: re.findall(r"`(tests/\S+\.py::\w+)`", text) for number, text in items}


@cache
def names_in(path: Path) -> frozenset[str]:
    """Functions, and the classes that Hypothesis makes of a machine."""
    tree = ast.parse(path.read_text())
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    made = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return frozenset([*functions, *(target.id for target in made if isinstance(target, ast.Name))])


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.splitlines()[0])
def test_every_promise_names_its_tests(section: str) -> None:
    tests = named(section)
    used: set[str] = set()
    found = promises(section)
    assert len(found) > 5, "the table is not read"
    for row, cell in found:
        numbers = re.findall(r"\[(\d+)\]", cell)
        assert numbers, f"{row}: “{cell}” names no test"
        assert not (missing := [number for number in numbers if not tests.get(number)]), f"{row}: {missing}"
        used.update(numbers)
    assert used == set(tests), "a test is named that no cell rests on"


def test_the_tests_that_are_named_are_there() -> None:
    names = re.findall(r"`(tests/\S+?\.py)::(\w+)`", PAGE.read_text())
    assert names
    for path, name in names:
        assert name.startswith(("test_", "Test")), name
        assert name in names_in(ROOT / path), f"{path} has no {name}"


def test_the_table_of_disks_names_tests() -> None:
    text = PAGE.read_text()
    rows = [line for line in text[text.index("| what happens to the disk") :].splitlines()[2:] if line.startswith("| ")]
    assert rows
    for row in rows:
        assert re.search(r"`tests/\S+\.py::\w+`", row), row
