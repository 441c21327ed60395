"""Applications of Python files, for commands that do not run them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.streams.app import App


def apps_of(path: Path) -> list[App]:
    """The applications of a Python file. Raises Failure if there is none."""
    from barnabas.streams.app import App
    from barnabas.streams.host.code import load_module

    if not path.is_file():
        raise Failure(f"there is no file {path}")
    found = {id(each): each for each in vars(load_module(path)).values() if isinstance(each, App)}
    if not found:
        raise Failure(f"{path} has no application: assign a barnabas.streams.App to a variable")
    return list(found.values())
