"""Every import goes to a lower row of ``tools/layers.py``, and only ``world`` uses what is not deterministic.

The server packages and the client packages share only the lowest rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import layers

SOURCE = Path(__file__).parents[2] / "src" / "barnabas"

SERVER = (*layers.SHARED, *layers.SERVER)
CLIENT = (*layers.SHARED, *layers.CLIENT)

# What is not deterministic may be imported by these modules alone. (The command line and the blocking clients are
# outside of the simulation.)
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
SIMULATED = {package for row in (*SERVER, ("client",)) for package in row}
WORLD_MODULES = {
    "world/real.py",
    "world/real_disk.py",
    "world/real_file.py",
    "world/page_cache.py",
    "client/blocking/loop.py",
}
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
            if node.module == "barnabas":
                yield from (f"barnabas.{alias.name}" for alias in node.names)


def allowed_below(package: str) -> set[str]:
    if package in layers.TOP:
        return {name for row in (*SERVER, *CLIENT) for name in row} | set(layers.TOP)
    allowed: set[str] = set()
    for rows in (SERVER, CLIENT):
        for depth, row in enumerate(rows):
            if package in row:
                allowed |= {name for lower in rows[:depth] for name in lower}
    return allowed | {package}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_import_goes_down(path: Path) -> None:
    place = path.relative_to(SOURCE)
    package = place.parts[0] if len(place.parts) > 1 else "cli"
    allowed = allowed_below(package)
    for name in imports(path):
        if name.startswith("barnabas."):
            target = name.split(".")[1]
            assert target in allowed, f"{place} imports {name}: {target} is not below {package}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_world_knows_time_chance_and_the_system(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    if place.split("/")[0] not in SIMULATED or place in WORLD_MODULES:
        return
    for name in imports(path):
        assert name.split(".")[0] not in WORLDLY, f"{place} imports {name}: go through barnabas.world"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_machines_do_not_wait(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    if place.startswith(MACHINES) and place not in DRIVERS:
        assert "asyncio" not in {name.split(".")[0] for name in imports(path)}, f"{place} imports asyncio"
