"""A connector's whole configuration, taken apart: common keys, the plugin's, transforms, predicates, converters. Pure.

``take_apart`` sorts the keys, ``validate`` gives Kafka's ``ConfigInfos``, ``assemble`` the typed configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from barnabas.connect.catalog import CONNECTORS, Catalog, Plugin
from barnabas.connect.config import Config, Key, keys_of, problems_of, unknown
from barnabas.connect.definitions import ConnectorConfig, SinkConfig, SourceConfig
from barnabas.connect.errors import ConfigError, UnknownPlugin
from barnabas.connect.plugins import PollSource, Source

CLASS: Final = "connector.class"
OVERRIDES: Final = ("producer.override.", "consumer.override.", "admin.override.")  # settings of the client
TOPIC_CREATION: Final = "topic.creation."
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_STEP_KEYS: Final = ("type", "plugin.version", "predicate", "negate")


class StepConfig(NamedTuple):
    """A transform or predicate, or a converter, with the keys of its own."""

    prefix: str  # of its keys, with the dot
    plugin: Plugin
    given: dict[str, str]
    predicate: str | None = None
    negate: bool = False


@dataclass(slots=True)
class Parts:
    """A configuration by what its keys belong to. ``problems`` are those found on the way, by key."""

    plugin: Plugin
    common: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)
    transforms: list[StepConfig] = field(default_factory=list)
    predicates: dict[str, StepConfig] = field(default_factory=dict)
    converters: dict[str, StepConfig] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    topic_creation: dict[str, str] = field(default_factory=dict)
    problems: dict[str, list[str]] = field(default_factory=dict)

    @property
    def common_kind(self) -> type[ConnectorConfig]:
        """Return the class of the common keys."""
        return SourceConfig if self.plugin.kind == "source" else SinkConfig

    def add_problem(self, key: str, message: str) -> None:
        """Note what is wrong with a key."""
        self.problems.setdefault(key, []).append(message)


def take_apart(catalog: Catalog, given: Mapping[str, str]) -> Parts:
    """Return the parts of a configuration; raise ``ConfigError`` or ``UnknownPlugin`` if the connector is unknown."""
    if not given.get(CLASS):
        shown = ", ".join(sorted(key for key in given))
        raise ConfigError(f"Connector config {{{shown}}} contains no connector type")
    plugin = catalog.find(given[CLASS], CONNECTORS, given.get("connector.plugin.version"))
    parts = Parts(plugin)
    rest = dict(given)
    common = {key.name for key in keys_of(parts.common_kind)}
    # A plugin that has a key of the same name as a common one gets it as well.
    own = {key.name for key in plugin.keys}
    parts.common = {key: value for key, value in rest.items() if key in common}
    parts.own = {key: value for key, value in rest.items() if key in own}
    for key in [*parts.common, *parts.own]:
        rest.pop(key, None)
    parts.overrides = _taken(rest, OVERRIDES)
    parts.extra = _taken(rest, plugin.cls.Config.any_prefix)
    if plugin.kind == "source":
        parts.topic_creation = _taken(rest, (TOPIC_CREATION,))
    _take_converters(catalog, parts, rest)
    _take_steps(catalog, parts, rest)
    for key in rest:
        parts.add_problem(key, unknown(key))
    return parts


def _taken(rest: dict[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    """Return and remove the keys with one of these prefixes."""
    taken = {key: value for key, value in rest.items() if prefixes and key.startswith(prefixes)}
    for key in taken:
        del rest[key]
    return taken


def _take_converters(catalog: Catalog, parts: Parts, rest: dict[str, str]) -> None:
    defaults = {key.name: key.default for key in keys_of(parts.common_kind)}
    for name in _CONVERTERS:
        found = {key.removeprefix(f"{name}."): value for key, value in _taken(rest, (f"{name}.",)).items()}
        chosen = parts.common.get(name) or defaults[name] or ""
        kinds = ("header_converter", "converter") if name.startswith("header") else ("converter",)
        try:
            plugin = catalog.find(chosen, kinds, parts.common.get(f"{name}.plugin.version"))  # type: ignore[arg-type]
        except UnknownPlugin as error:
            parts.add_problem(name, f"Invalid value {chosen} for configuration {name}: {error}")
            continue
        parts.converters[name] = StepConfig(f"{name}.", plugin, found)


def _take_steps(catalog: Catalog, parts: Parts, rest: dict[str, str]) -> None:
    for kind, key in (("transformation", "transforms"), ("predicate", "predicates")):
        for name in [each.strip() for each in parts.common.get(key, "").split(",") if each.strip()]:
            prefix = f"{key}.{name}."
            taken = {each.removeprefix(prefix): value for each, value in _taken(rest, (prefix,)).items()}
            if "type" not in taken:
                parts.add_problem(f"{prefix}type", f'Missing required configuration "{prefix}type".')
                continue
            try:
                plugin = catalog.find(taken["type"], (kind,), taken.get("plugin.version"))  # type: ignore[arg-type]
            except UnknownPlugin as error:
                message = f"Invalid value {taken['type']} for configuration {prefix}type: {error}"
                parts.add_problem(f"{prefix}type", message)
                continue
            step = StepConfig(
                prefix,
                plugin,
                {each: value for each, value in taken.items() if each not in _STEP_KEYS},
                taken.get("predicate"),
                taken.get("negate", "false").lower() == "true",
            )
            if kind == "predicate":
                parts.predicates[name] = step
            else:
                parts.transforms.append(step)
    for step in parts.transforms:
        if step.predicate is not None and step.predicate not in parts.common.get("predicates", ""):
            parts.add_problem(f"{step.prefix}predicate", f"{step.prefix}predicate: {step.predicate!r} is no predicate")


def _sections(parts: Parts) -> Iterator[tuple[str, type[Config], dict[str, str]]]:
    """Yield prefix, configuration class and keys of each part."""
    yield "", parts.common_kind, parts.common
    yield "", parts.plugin.cls.Config, parts.own
    for step in (*parts.converters.values(), *parts.transforms, *parts.predicates.values()):
        yield step.prefix, step.plugin.cls.Config, step.given


def check(parts: Parts) -> list[tuple[Key, str | None, list[str]]]:
    """Return every key with its value and what is wrong with it; keys that are unknown come last."""
    found: list[tuple[Key, str | None, list[str]]] = []
    left = {key: list(messages) for key, messages in parts.problems.items()}
    for prefix, kind, given in _sections(parts):
        rows = problems_of(kind, given)
        known = {key.name for key, _ in rows}
        for name in given:
            if name not in known and not name.startswith(kind.any_prefix or ("\0",)):
                left.setdefault(prefix + name, []).append(unknown(prefix + name))
        broken = [] if any(messages for _, messages in rows) else _broken(kind, given, known)
        for key, messages in rows:
            named = _prefixed(key, prefix)
            here = [message.replace(key.name, named.name) if prefix else message for message in messages]
            found.append((named, given.get(key.name), here + left.pop(named.name, [])))
        if broken and found:
            found[-1][2].extend(broken)
    if parts.plugin.kind == "source":
        _check_replay(parts, found)
    return found + [(_bare(name), None, messages) for name, messages in left.items()]


def _broken(kind: type[Config], given: Mapping[str, str], known: set[str]) -> list[str]:
    """Return the rules over several keys that are broken."""
    try:
        kind.read({key: value for key, value in given.items() if key in known})
    except ConfigError as error:
        return list(error.problems)
    return []


def _check_replay(parts: Parts, found: list[tuple[Key, str | None, list[str]]]) -> None:
    cls: type[Any] = parts.plugin.cls
    can_replay = issubclass(cls, Source) or (issubclass(cls, PollSource) and cls.replayable)
    for key, value, messages in found:
        if key.name == "exactly.once.support" and value == "required" and not can_replay:
            messages.append(f"{parts.plugin.name} cannot read the same records again: exactly.once.support=requested")


def _prefixed(key: Key, prefix: str) -> Key:
    if not prefix:
        return key
    return Key(
        prefix + key.name, key.type, key.required, key.default, key.importance, key.documentation, key.group,
        key.choices, key.hint,
    )  # fmt: skip


def _bare(name: str) -> Key:
    return Key(name, "STRING", False, None, "LOW", "", None, (), str)


def validate(catalog: Catalog, given: Mapping[str, str]) -> dict[str, Any]:
    """Return Kafka's ``ConfigInfos`` of a configuration."""
    parts = take_apart(catalog, given)
    rows = check(parts)
    groups = list(dict.fromkeys(key.group for key, _, _ in rows if key.group is not None))
    return {
        "name": given[CLASS],
        "error_count": sum(len(messages) for _, _, messages in rows),
        "groups": groups,
        "configs": [key.info(value, messages, order) for order, (key, value, messages) in enumerate(rows, 1)],
    }


def problems(parts: Parts) -> list[str]:
    """Return all messages."""
    return [message for _, _, messages in check(parts) for message in messages]


def secret_keys(parts: Parts) -> list[str]:
    """Return the keys whose values must not be shown."""
    return [
        prefix + key.name for prefix, kind, _ in _sections(parts) for key in keys_of(kind) if key.type == "PASSWORD"
    ]
