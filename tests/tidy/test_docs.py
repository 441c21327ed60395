"""The docs hold: the table of packages, generated pages, files that pages name; and every module is imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "barnabas"
# Found by name and not by import: commands, messages, APIs, plugins, and what is run as a program.
PLUGINS = ("connect/transforms/", "connect/connectors/", "connect/driver/main.py", "connect/worker/plugin_process.py")
LOADED_BY_NAME = ("cli/", "wire/messages/", "broker/handlers/", "testing/", "__main__.py", *PLUGINS)


def test_every_package_is_in_the_table() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", page.split("packages begin")[1].split("packages end")[0], re.MULTILINE)
    assert sorted(named) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    for name in re.findall(r"`((?:src|tests|docs|tools|bench)/[\w/.-]+\.\w+)", page.read_text()):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_the_generated_pages_are_current() -> None:
    command = [sys.executable, "-m", "tools.gen_docs", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def imported() -> Iterator[str]:
    for folder in ("src", "tests", "tools", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield node.module
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_module_is_left_that_nobody_imports() -> None:
    used = set(imported())
    unused = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        name = ".".join(("barnabas", *place.with_suffix("").parts)).removesuffix(".__init__")
        is_package = path.name == "__init__.py"
        if not is_package and name not in used and not place.as_posix().startswith(LOADED_BY_NAME):
            unused.append(place.as_posix())
    assert unused == []
