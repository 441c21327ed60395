"""Every kind of finding of ``barnabas doctor`` is brought about by a test on real brokers, which looks at what it says.

The kinds are read from where findings are made, the tests from their calls of ``expect``: see
``tests/integration/doctoring.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "barnabas" / "ops" / "doctor").glob("*.py"))
TESTS = sorted((ROOT / "tests" / "integration").glob("test_*.py"))
SAID = ("severity", "about", "evidence", "mend")


def calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def kinds() -> set[str]:
    found = set()
    for path in SOURCES:
        for call in calls(ast.parse(path.read_text()), "Finding"):
            texts = [node for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
            found |= {str(node.value) for node in texts if isinstance(node.value, str)}
    return found


def provoked() -> dict[str, list[ast.Call]]:
    """The calls of ``expect`` within tests, by kind."""
    found: dict[str, list[ast.Call]] = {}
    for path in TESTS:
        text = path.read_text()
        if "expect(" not in text:
            continue
        for test in ast.walk(ast.parse(text)):
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                for call in calls(test, "expect"):
                    assert isinstance(call.args[1], ast.Constant), f"{path.name}: name the kind itself"
                    found.setdefault(str(call.args[1].value), []).append(call)
    return found


PROVOKED = provoked()


def test_findings_have_kinds() -> None:
    assert len(kinds()) >= 27
    assert all(kind == kind.lower() and " " not in kind for kind in kinds())


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_a_test_brings_it_about_and_looks_at_evidence_and_command(kind: str) -> None:
    assert kind in PROVOKED, f"no test in tests/integration expects {kind!r}"
    for call in PROVOKED[kind]:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for name in SAID:
            assert name in given, f"{kind}: {name} is not looked at"
            assert not (isinstance(given[name], ast.Constant) and not given[name].value), f"{kind}: {name} is empty"


def test_nothing_is_expected_that_is_never_said() -> None:
    assert sorted(set(PROVOKED) - kinds()) == []
