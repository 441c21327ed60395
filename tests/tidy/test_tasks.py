"""Every task of the server has an owner: only ``world/tasks.py`` starts tasks, so no exception of one is lost."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "barnabas"
SERVER = (
    "model",
    "wire",
    "world",
    "security",
    "observe",
    "transport",
    "http",
    "storage",
    "raft",
    "metadata",
    "replication",
    "coordinator",
    "broker",
)
OWNER = SOURCE / "world" / "tasks.py"
STARTERS = {"create_task", "ensure_future"}


def starts(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    names = ((node, getattr(node, "attr", getattr(node, "id", ""))) for node in nodes)
    return [f"{path.relative_to(SOURCE)}:{node.lineno} {name}" for node, name in names if name in STARTERS]  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", SERVER)
def test_only_one_module_of_the_server_starts_tasks(package: str) -> None:
    found = [start for path in sorted((SOURCE / package).rglob("*.py")) if path != OWNER for start in starts(path)]
    assert not found, f"use barnabas.world.tasks: {', '.join(found)}"


def test_the_owner_of_tasks_is_found() -> None:
    assert starts(OWNER)
