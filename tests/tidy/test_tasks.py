"""Every task of the server has an owner, and every deadline is on the world's clock.

Only ``world/tasks.py`` starts tasks, so no exception of a task is lost. Deadlines are set with ``world.timers``, so a
test that moves the clock moves them.
"""

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
DEADLINES = {"call_later", "call_at"}
# A connection cannot use the world's clock: the clock of its peer is not moved. The watch measures the loop itself.
ON_THE_LOOP = {"timers.py", "session.py", "lane.py", "loop_watch.py"}


def uses(path: Path, wanted: set[str]) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    names = ((node, getattr(node, "attr", getattr(node, "id", ""))) for node in nodes)
    return [f"{path.relative_to(SOURCE)}:{node.lineno} {name}" for node, name in names if name in wanted]  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", SERVER)
def test_only_one_module_of_the_server_starts_tasks(package: str) -> None:
    found = [
        start for path in sorted((SOURCE / package).rglob("*.py")) if path != OWNER for start in uses(path, STARTERS)
    ]
    assert not found, f"use barnabas.world.tasks: {', '.join(found)}"


def test_the_owner_of_tasks_is_found() -> None:
    assert uses(OWNER, STARTERS)


@pytest.mark.parametrize("package", SERVER)
def test_deadlines_are_on_the_clock_of_the_world(package: str) -> None:
    paths = [
        path for path in sorted((SOURCE / package).rglob("*.py")) if not path.as_posix().endswith(tuple(ON_THE_LOOP))
    ]
    found = [use for path in paths for use in uses(path, DEADLINES)]
    assert not found, f"use barnabas.world.timers: {', '.join(found)}"
