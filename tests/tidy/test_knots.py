"""No modules import each other, not even for types; knots that are left are counted and may only become fewer.

Type-only imports and imports inside of functions count. Two graphs are looked at: modules, and the sub-packages of one
package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "barnabas"

# Modules that import each other today: those whose names begin so, and how many there are.
TIED_MODULES = {
    "broker.": 8,
    "client.cluster.": 2,
    "metadata.image": 2,
    "ops.records.schemas": 2,
    "storage.": 17,
    "streams.runtime.": 15,
    "streams.": 12,  # streams and tables make each other
    "testing.": 4,
    "world.memory": 2,
}
# Sub-packages that import each other today: their package, and how many there are.
TIED_PACKAGES = {"broker": 10}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {dotted(path): path for path in SOURCE.rglob("*.py")}


def imported(name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            wholes = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names = [whole if whole.removeprefix("barnabas.") in MODULES else node.module for whole in wholes.values()]
        else:
            continue
        for target in names:
            short = target.removeprefix("barnabas").removeprefix(".")
            if target.startswith("barnabas") and short in MODULES and short != name:
                yield short


def tied(graph: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes of a graph that can be reached from themselves."""
    found = set()
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        if start in seen:
            found.add(start)
    return found


GRAPH = {name: set(imported(name)) for name in MODULES}


def test_no_modules_import_each_other() -> None:
    left = tied(GRAPH)
    for prefix, count in TIED_MODULES.items():
        known = {name for name in left if name.startswith(prefix)}
        assert len(known) <= count, f"{prefix}: {sorted(known)} import each other"
        left -= known
    assert left == set(), f"{sorted(left)} import each other"


def test_no_sub_packages_import_each_other() -> None:
    packages: dict[str, set[str]] = {}
    for name, targets in GRAPH.items():
        home = name.split(".")[:2]
        for target in targets:
            other = target.split(".")[:2]
            is_beside = name.count(".") > 1 and target.count(".") > 1 and home[0] == other[0] and home != other
            if is_beside:
                packages.setdefault(".".join(home), set()).add(".".join(other))
    found = tied(packages)
    for package, count in TIED_PACKAGES.items():
        known = {name for name in found if name.startswith(f"{package}.")}
        assert len(known) <= count, f"{package}: {sorted(known)} import each other"
        found -= known
    assert found == set(), f"{sorted(found)} import each other"
