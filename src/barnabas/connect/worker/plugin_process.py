"""The plugin process: a child of the worker that imports plugins and answers questions about configurations.

It reads JSON lines from its input and writes answers to its output; it ends when its input ends.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from barnabas.connect.catalog import CONNECTORS, Catalog, Plugin, PluginSettings, directory_state, load
from barnabas.connect.config import HIDDEN, keys_of
from barnabas.connect.connector_config import Parts, problems, secret_keys, take_apart, validate
from barnabas.connect.definitions import SinkConfig, SourceConfig
from barnabas.connect.errors import ConfigError, OffsetError, UnknownPlugin
from barnabas.connect.plugins import Context, Kind, Source
from barnabas.connect.records import Entry
from barnabas.connect.references import Resolver, is_reference

ALL_KINDS: Final[tuple[Kind, ...]] = (*CONNECTORS, "transformation", "predicate", "converter", "header_converter")


class PluginHost:
    """Answers questions. Plugins are loaded again when the plugins directory changes."""

    def __init__(self, settings: PluginSettings, resolver: Resolver) -> None:
        self._settings = settings
        self._resolver = resolver
        self._state = directory_state(settings)
        self._catalog = load(settings)

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; errors are answers too."""
        state = directory_state(self._settings)
        if state != self._state:
            self._state, self._catalog = state, load(self._settings)
        try:
            match message.get("op"):
                case "plugins":
                    return {"plugins": [plugin.shown for plugin in self._catalog]}
                case "keys":
                    return {"keys": plugin_keys(self._catalog, message["name"])}
                case "validate":
                    return {"infos": self._validate(message["config"])}
                case "check":
                    return self._check(message["config"])
                case "offsets":
                    return self._offsets(message["config"], message["entries"])
        except (ConfigError, UnknownPlugin) as error:
            return {"error": type(error).__name__, "message": str(error)}
        except OffsetError as error:
            return {"error": "OffsetError", "message": str(error)}
        except Exception as error:  # noqa: BLE001 - plugins may raise anything; the worker gets a message
            return {"error": "PluginError", "message": f"{type(error).__name__}: {error}"}
        return {"error": "PluginError", "message": f"unknown request {message.get('op')!r}"}

    def _resolved(self, config: Mapping[str, str]) -> dict[str, str]:
        return self._resolver.resolve(config)[0]

    def _validate(self, config: Mapping[str, str]) -> dict[str, Any]:
        infos = validate(self._catalog, self._resolved(config))
        for each in infos["configs"]:
            given = config.get(each["value"]["name"])
            if given is not None and is_reference(given):
                each["value"]["value"] = given
        return infos

    def _check(self, config: Mapping[str, str]) -> dict[str, Any]:
        parts = take_apart(self._catalog, self._resolved(config))
        given = take_apart(self._catalog, config)
        return {
            "problems": problems(parts),
            "secrets": secret_keys(given),
            "kind": parts.plugin.kind,
            "version": parts.plugin.version,
            "tasks": task_count(parts),
        }

    def _offsets(self, config: Mapping[str, str], entries: list[list[Any]]) -> dict[str, Any]:
        parts = take_apart(self._catalog, self._resolved(config))
        made = [Entry(partition, offset) for partition, offset in entries]
        source_of(parts).offset([entry for entry in made if entry.offset is not None])
        return {"ok": True}


def source_of(parts: Parts) -> Source[Any]:
    """Return the source of a configuration, to ask it about offsets."""
    cls: type[Any] = parts.plugin.cls
    if not issubclass(cls, Source):
        cls = type(cls.__name__, (Source,), {"Config": cls.Config})  # polling sources keep one cursor
    made: Source[Any] = cls(parts.plugin.cls.Config.read(parts.own), Context(parts.common["name"], extra=parts.extra))
    return made


def task_count(parts: Parts) -> int:
    """Return how many tasks a connector has: light sources have one."""
    cls: type[Any] = parts.plugin.cls
    is_light = parts.plugin.kind == "source" and not (issubclass(cls, Source) and cls.lane == "own")
    try:
        return 1 if is_light else max(1, int(parts.common.get("tasks.max", "1")))
    except ValueError:
        return 1


def plugin_keys(catalog: Catalog, name: str) -> list[dict[str, Any]]:
    """Return the keys of a plugin; a connector has the common ones as well."""
    plugin: Plugin = catalog.find(name, ALL_KINDS)
    found = [key.definition() for key in plugin.keys]
    if plugin.kind in CONNECTORS:
        common = SourceConfig if plugin.kind == "source" else SinkConfig
        found += [key.definition(order) for order, key in enumerate(keys_of(common), 1)]
    for each in found:
        if each["type"] == "PASSWORD" and each["default_value"]:
            each["default_value"] = HIDDEN
    return found


def serve(lines: Any, output: Any) -> None:
    """Answer requests until there are none; the first line has the settings."""
    first = msgspec.json.decode(lines.readline())
    settings = PluginSettings(first.get("directory"), tuple(first["allow"]))
    host = PluginHost(settings, Resolver(allowed_paths=first.get("allowed_paths", ())))
    for line in lines:
        message = msgspec.json.decode(line)
        output.write(msgspec.json.encode(host.answer(message) | {"id": message["id"]}) + b"\n")
        output.flush()


def main() -> None:
    """Run the process. What plugins print goes to the log of the worker, not into the answers."""
    output = sys.stdout.buffer
    sys.stdout = sys.stderr
    serve(sys.stdin.buffer, output)


if __name__ == "__main__":
    main()
