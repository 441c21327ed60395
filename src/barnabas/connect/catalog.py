"""Which plugins there are, and how a name finds one: built-in modules, entry points, and a directory of files.

A name may be the plugin's own, an alias (the Java class that it stands for), the last part of such a class name, or
that without ``Connector``, as in Kafka. ``module:attribute`` loads any class if ``plugins.allow`` admits the module.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import barnabas
from barnabas.connect.config import Key, keys_of
from barnabas.connect.errors import UnknownPlugin
from barnabas.connect.plugins import MARK, Kind, Mark, transform
from barnabas.observe.log import logger

ENTRY_POINTS: Final = "entry-points"  # word of plugins.allow: plugins of installed packages
DIRECTORY: Final = "directory"  # word of plugins.allow: files in the plugins directory
ALLOWED: Final = (ENTRY_POINTS, DIRECTORY)
GROUPS: Final = ("barnabas.connectors", "barnabas.transforms", "barnabas.predicates", "barnabas.converters")
PACKAGE: Final = "barnabas_plugins"  # name under which files of the directory are imported
CONNECTORS: Final[tuple[Kind, ...]] = ("source", "sink")
# Modules of this package that hold plugins. Each must import without its optional dependencies.
BUILT_IN: Final = (
    "barnabas.connect.converters",
    "barnabas.connect.avro_converter",
    "barnabas.connect.transforms.fields",
    "barnabas.connect.transforms.headers",
    "barnabas.connect.transforms.routing",
    "barnabas.connect.transforms.shapes",
    "barnabas.connect.transforms.timestamps",
    "barnabas.connect.transforms.cast",
    "barnabas.connect.transforms.predicates",
    "barnabas.connect.transforms.unwrap",
    "barnabas.connect.connectors.files_source",
    "barnabas.connect.connectors.files_sink",
    "barnabas.connect.connectors.datagen",
    "barnabas.connect.connectors.postgres.source",
    "barnabas.connect.connectors.iceberg_sink",
    "barnabas.connect.connectors.sql.sink",
    "barnabas.connect.connectors.sql.source",
)

_log: Final = logger("connect")


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Where plugins come from; picklable, so that executors load the same ones."""

    directory: str | None = None
    allow: tuple[str, ...] = ALLOWED


@dataclass(frozen=True, slots=True)
class Plugin:
    """A class that can be used under a name."""

    name: str
    kind: Kind
    cls: type[Any]
    version: str
    aliases: tuple[str, ...] = ()
    keys: list[Key] = field(compare=False, default_factory=list)

    @property
    def shown(self) -> dict[str, str]:
        """Return the plugin as ``GET /connector-plugins`` lists it."""
        return {"class": self.name, "type": self.kind, "version": self.version}

    def names(self) -> Iterator[str]:
        """Yield every name by which the plugin is found."""
        for name in (self.name, *self.aliases):
            short = name.rpartition(".")[2]
            for each in (name, short):
                yield each
                if each.endswith("Connector"):
                    yield each.removesuffix("Connector")


class Catalog:
    """Plugins by name."""

    def __init__(self, plugins: Iterable[Plugin] = (), allow: Sequence[str] = ALLOWED) -> None:
        self._plugins: dict[tuple[Kind, str], Plugin] = {}
        self._names: dict[tuple[Kind, str], Plugin] = {}
        self._allow = tuple(allow)
        for plugin in plugins:
            self.add(plugin)

    def add(self, plugin: Plugin) -> None:
        """Add a plugin; one of the same name that is already there stays."""
        if (plugin.kind, plugin.name) in self._plugins:
            _log.warning("two plugins have the same name; the first one is used", plugin=plugin.name)
            return
        self._plugins[plugin.kind, plugin.name] = plugin
        for name in plugin.names():
            self._names.setdefault((plugin.kind, name), plugin)

    def __iter__(self) -> Iterator[Plugin]:
        return iter(sorted(self._plugins.values(), key=lambda plugin: (plugin.kind, plugin.name)))

    def find(self, name: str, kinds: Sequence[Kind], version: str | None = None) -> Plugin:
        """Return the plugin of this name, or raise ``UnknownPlugin`` with the names that there are."""
        found = next((self._names[kind, name] for kind in kinds if (kind, name) in self._names), None)
        if found is None and ":" in name:
            found = self._imported(name, kinds)
        if found is None:
            known = ", ".join(sorted(plugin.name for plugin in self if plugin.kind in kinds))
            raise UnknownPlugin(f"there is no {' or '.join(kinds)} plugin {name!r}; installed are: {known}")
        if version is not None and version != found.version:
            raise UnknownPlugin(f"plugin {name!r} is installed in version {found.version}, not {version}")
        return found

    def _imported(self, name: str, kinds: Sequence[Kind]) -> Plugin | None:
        module, _, attribute = name.partition(":")
        if not any(fnmatchcase(module, pattern) for pattern in self._allow if pattern not in ALLOWED):
            raise UnknownPlugin(f"{name!r}: plugins.allow admits no plugins of the module {module!r}")
        try:
            made = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UnknownPlugin(f"{name!r} cannot be loaded: {error}") from error
        if not hasattr(made, MARK) and inspect.isfunction(made) and "transformation" in kinds:
            made = transform(name)(made)
        if not hasattr(made, MARK) or getattr(made, MARK).kind not in kinds:
            raise UnknownPlugin(f"{name!r} is not a {' or '.join(kinds)} plugin")
        return plugin_of(made, "0", name=name)


def plugin_of(cls: type[Any], version: str, *, name: str | None = None) -> Plugin:
    """Return the plugin of a class that a decorator has marked."""
    mark: Mark = getattr(cls, MARK)
    return Plugin(name or mark.name, mark.kind, cls, version, mark.aliases, keys_of(cls.Config))


def load(settings: PluginSettings) -> Catalog:
    """Return the catalog of all plugins that ``settings`` admit; one that cannot be imported is logged."""
    catalog = Catalog(allow=settings.allow)
    for name in BUILT_IN:
        _add_all(catalog, importlib.import_module(name), barnabas.__version__)
    if ENTRY_POINTS in settings.allow:
        for point in (point for group in GROUPS for point in entry_points(group=group)):
            _add_entry_point(catalog, point)
    if DIRECTORY in settings.allow and settings.directory is not None:
        for path in sorted(Path(settings.directory).glob("*.py")):
            module = _import_file(path)
            if module is not None:
                _add_all(catalog, module, getattr(module, "__version__", "0"))
    return catalog


def directory_state(settings: PluginSettings) -> tuple[tuple[str, int, int], ...]:
    """Return names, sizes and times of the plugins directory: if they change, load again."""
    if settings.directory is None or DIRECTORY not in settings.allow:
        return ()
    stats = [(path.name, path.stat()) for path in sorted(Path(settings.directory).glob("*.py"))]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def _add_all(catalog: Catalog, module: ModuleType, version: str) -> None:
    for made in list(vars(module).values()):
        if inspect.isclass(made) and MARK in vars(made) and made.__module__ == module.__name__:
            catalog.add(plugin_of(made, version))


def _add_entry_point(catalog: Catalog, point: EntryPoint) -> None:
    version = point.dist.version if point.dist is not None else "0"
    try:
        made = point.load()
    except Exception as error:  # noqa: BLE001 - code of another package may raise anything at import
        _log.error("plugin cannot be imported", plugin=point.name, module=point.value, error=error)
        return
    if inspect.ismodule(made):
        _add_all(catalog, made, version)
    elif inspect.isclass(made) and hasattr(made, MARK):
        catalog.add(plugin_of(made, version))
    else:
        _log.error("entry point is neither a plugin nor a module of plugins", name=point.name, value=point.value)


def _import_file(path: Path) -> ModuleType | None:
    name = f"{PACKAGE}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - a user's file may raise anything at import
        del sys.modules[name]
        _log.error("plugins file cannot be imported", path=path, error=error)
        return None
    return module
