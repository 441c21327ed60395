"""The picture of the house holds: every import goes down, and only one door leads to the world.

The rows are those of ``barnabas/__init__.py``. The server tower and the client tower share only the floor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "barnabas"

FLOOR = ("model",), ("wire", "world", "security", "observe"), ("transport", "http")
SERVER = (*FLOOR, ("storage",), ("raft",), ("metadata",), ("replication",), ("coordinator",), ("broker",))
CLIENT = (*FLOOR, ("client",), ("spark",), ("ops",), ("rest",), ("console", "connect", "registry", "streams"))
ROOF = ("cli", "testing")

# What is not deterministic may be imported by the rooms of the world alone (the command line and the blocking face of
# the client are outside the simulation).
WORLDLY = {
    "time",
    "random",
    "socket",
    "os",
    "uuid",
    "secrets",
    "threading",
    "datetime",
    "concurrent",
    "select",
    "signal",
}
SIMULATED = {room for row in (*SERVER, ("client",)) for room in row}
DOORS = {"world/real.py", "world/real_disk.py", "world/real_file.py", "world/page_cache.py", "client/blocking/loop.py"}
# Machines decide without waiting: no event loop inside.
MACHINES = (
    "wire/",
    "raft/machine",
    "raft/quorum",
    "metadata/image",
    "metadata/placement",
    "replication/isr.py",
    "replication/follower.py",
    "replication/throttle.py",
    "coordinator/",
)
DRIVERS = {
    "coordinator/runtime/runtime.py",
    "coordinator/runtime/shard_runner.py",
    "coordinator/transactions/marker_delivery.py",
    "coordinator/transactions/producer_id_fetches.py",
    "coordinator/transactions/markers.py",
    "coordinator/transactions/cluster_markers.py",
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


def allowed_below(room: str) -> set[str]:
    if room in ROOF:
        return {name for row in (*SERVER, *CLIENT) for name in row} | set(ROOF)
    allowed: set[str] = set()
    for tower in (SERVER, CLIENT):
        for depth, row in enumerate(tower):
            if room in row:
                allowed |= {name for lower in tower[:depth] for name in lower}
    return allowed | {room}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_import_goes_down(path: Path) -> None:
    place = path.relative_to(SOURCE)
    room = place.parts[0] if len(place.parts) > 1 else "cli"
    allowed = allowed_below(room)
    for name in imports(path):
        if name.startswith("barnabas."):
            target = name.split(".")[1]
            assert target in allowed, f"{place} imports {name}: {target} is not below {room}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_world_knows_time_chance_and_the_system(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    if place.split("/")[0] not in SIMULATED or place in DOORS:
        return
    for name in imports(path):
        assert name.split(".")[0] not in WORLDLY, f"{place} imports {name}: go through barnabas.world"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_machines_do_not_wait(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    if place.startswith(MACHINES) and place not in DRIVERS:
        assert "asyncio" not in {name.split(".")[0] for name in imports(path)}, f"{place} imports asyncio"
