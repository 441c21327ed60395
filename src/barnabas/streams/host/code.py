"""How the code of an application reaches Spark's workers: as the source of its module, which the workers run again.

Functions could be sent by value, but classes of msgspec that are sent so arrive without their fields. A worker
imports the module if it can, otherwise it runs the source that the driver sends. The application must therefore be a
global variable of a module, and building it must give the same topology every time.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from barnabas.streams.app import App
from barnabas.streams.errors import TopologyError

__all__ = ["AppCode", "load_module"]

MAIN: Final = "__barnabas_main__"  # name in workers of the module that is the driver's program
FILE_PREFIX: Final = "barnabas_app_"  # and of modules that ``barnabas run`` loads
_apps: dict[AppCode, App] = {}


@dataclass(frozen=True)
class AppCode:
    """A module, by name and source, and the variable of it that is the application."""

    module: str
    variable: str
    path: str
    source: str

    @classmethod
    def of(cls, app: App) -> AppCode:
        """Find the module that has the application. Raises TopologyError if there is none."""
        modules = {app.module: sys.modules.get(app.module)} | sys.modules  # first the module that made it
        for name, module in modules.items():
            path = getattr(module, "__file__", None)
            if module is None or path is None or name == "__mp_main__":
                continue
            variable = next((key for key, value in list(vars(module).items()) if value is app), None)
            if variable is not None and Path(path).suffix == ".py":
                known = MAIN if name == "__main__" else name
                return cls(known, variable, str(path), Path(path).read_text())
        raise TopologyError(
            f"application {app.application_id} is not a global variable of a module, so Spark's workers cannot load "
            f"it; assign it at the top level of a Python file"
        )

    def app(self) -> App:
        """The application, built at the first call in this process."""
        found = _apps.get(self)
        if found is None:
            found = _apps[self] = getattr(self._load(), self.variable)
        return found

    def _load(self) -> ModuleType:
        module = sys.modules.get(self.module)
        if module is not None and isinstance(getattr(module, self.variable, None), App):
            return module
        if not self.module.startswith((MAIN, FILE_PREFIX)):
            try:
                return importlib.import_module(self.module)
            except ModuleNotFoundError:
                pass  # a module of the driver's program alone, for example of a test
        return load_module(Path(self.path), self.module, self.source)


def load_module(path: Path, name: str | None = None, source: str | None = None) -> ModuleType:
    """Run a Python file as a module. Files beside it can be imported."""
    known = name or f"{FILE_PREFIX}{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    directory = str(path.resolve().parent)
    if directory not in sys.path:
        sys.path.append(directory)
    module = ModuleType(known)
    module.__file__ = str(path)
    sys.modules[known] = module
    try:
        exec(compile(source if source is not None else path.read_text(), str(path), "exec"), vars(module))  # noqa: S102
    except BaseException:
        del sys.modules[known]
        raise
    return module
