"""Small at birth is easy; this keeps it so. Today's exceptions are listed with their size and may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "barnabas"
TESTS = Path(__file__).parents[1]
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
BANNED_NAMES = {"utils.py", "helpers.py", "common.py", "misc.py", "base.py", "manager.py"}

# Generated-looking tables that one would read in one piece anyway: module -> lines.
EXCEPTIONS: dict[str, int] = {}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_one_noun_and_short(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    assert path.name not in BANNED_NAMES
    text = path.read_text()
    lines = len(text.splitlines())
    assert lines <= EXCEPTIONS.get(place, MODULE_LINES_MAX), f"{place} has {lines} lines"
    tree = ast.parse(text)
    if lines:
        assert ast.get_docstring(tree), f"{place} does not say what lives in it"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size <= FUNCTION_LINES_MAX, f"{place}:{node.name} has {size} lines"


def test_a_file_of_tests_is_short_and_says_what_it_shows() -> None:
    """What tests share stands in a module beside them, under a name that no other folder of tests has."""
    modules: dict[str, Path] = {}
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS).as_posix()
        text = path.read_text()
        assert path.name not in BANNED_NAMES
        assert len(text.splitlines()) <= MODULE_LINES_MAX, f"{place} has {len(text.splitlines())} lines"
        assert ast.get_docstring(ast.parse(text)), f"{place} does not say what it shows"
        if path.name != "conftest.py" and not path.name.startswith("test_"):
            # All folders are on the path of one process, so the first module of a name would stand for the second.
            assert modules.setdefault(path.name, path) == path, f"{place} is named like {modules[path.name]}"
