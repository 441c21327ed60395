"""Typed configuration of plugins: a struct whose fields are Kafka's configuration keys.

    class Orders(Config):
        url: Annotated[str, doc("Address of the orders API")]
        topic: Annotated[str, doc("Topic to write to")]
        page_size: Annotated[int, doc("Orders per request"), Meta(ge=1, le=1000)] = 100
        token: Annotated[Secret, doc("Bearer token")] = Secret("")
        mode: Literal["all", "new"] = "all"
        tables: Names = ()

A field ``page_size`` is the key ``page.size``; ``msgspec.field(name=...)`` sets another name. Values arrive as strings,
as in Kafka. ``read`` converts them and raises ``ConfigError`` with one message per invalid key. Override ``check`` for
rules over several fields.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from barnabas.connect.errors import ConfigError

HIDDEN: Final = "********"  # shown instead of a secret; a client that sends it back keeps the stored value
C = TypeVar("C", bound="Config")
Names = tuple[str, ...]  # a list of names, separated by commas in the configuration


class Secret(str):
    """A password or token. It prints as asterisks; ``reveal`` returns the text."""

    __slots__ = ()

    def reveal(self) -> str:
        """Return the text itself."""
        return str.__str__(self)

    def __str__(self) -> str:
        return HIDDEN if len(self) else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def doc(text: str, *, importance: str | None = None, group: str | None = None) -> Meta:
    """Return the documentation of a field, with Kafka's importance (HIGH, MEDIUM, LOW) and group."""
    extra = {key: value for key, value in (("importance", importance), ("group", group)) if value is not None}
    return Meta(description=text, extra=extra)


def dotted(name: str) -> str:
    """Return the configuration key of a field's name."""
    return name.replace("_", ".")


class Config(msgspec.Struct, kw_only=True, rename=dotted, forbid_unknown_fields=True):
    """Base of all configurations."""

    any_prefix: ClassVar[tuple[str, ...]] = ()  # prefixes of keys that the plugin reads itself, from ``extra``

    def check(self) -> list[str]:
        """Return one message for each rule over several fields that is broken."""
        return []

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Return the configuration of these keys, which are this plugin's alone."""
        problems = [problem for _, found in problems_of(cls, given) for problem in found]
        problems += [unknown(key) for key in unknown_keys(cls, given)]
        if problems:
            raise ConfigError(*problems)
        keys = {key.name: key for key in keys_of(cls)}
        values = {name: _parsed(keys[name], value) for name, value in given.items() if name in keys}
        made = msgspec.convert(values, cls, strict=False, dec_hook=_secret)
        broken = made.check()
        if broken:
            raise ConfigError(*broken)
        return made


@dataclass(frozen=True, slots=True)
class Key:
    """One key as Kafka's ConfigDef describes it."""

    name: str
    type: str
    required: bool
    default: str | None
    importance: str
    documentation: str
    group: str | None
    choices: tuple[str, ...]
    hint: Any  # type of the field, with its constraints

    def definition(self, order: int = -1) -> dict[str, Any]:
        """Return the key as ``GET /connector-plugins/P/config`` shows it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "default_value": self.default,
            "importance": self.importance,
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": order,
            "width": "NONE",
            "display_name": self.name,
            "dependents": [],
        }

    def info(self, value: str | None, errors: list[str], order: int = -1) -> dict[str, Any]:
        """Return the key with its value and errors, as ``validate`` answers."""
        shown = self.default if value is None else value
        if self.type == "PASSWORD" and shown:
            shown = HIDDEN
        detail = {
            "name": self.name,
            "value": shown,
            "recommended_values": list(self.choices),
            "errors": errors,
            "visible": True,
        }
        return {"definition": self.definition(order), "value": detail}


_KINDS: Final[Mapping[Any, str]] = {
    bool: "BOOLEAN",
    int: "INT",
    float: "DOUBLE",
    str: "STRING",
    Secret: "PASSWORD",
    list[str]: "LIST",
    tuple[str, ...]: "LIST",
}


def keys_of(kind: type[Config]) -> list[Key]:
    """Return the keys of a configuration, in the order of its fields."""
    return list(_keys(kind))


def _keys(kind: type[Config]) -> Iterator[Key]:
    for each in msgspec.structs.fields(kind):
        plain, metas = _unwrapped(each.type)
        extra: dict[str, Any] = {}
        text = ""
        for meta in metas:
            extra |= meta.extra or {}
            text = meta.description or text
        choices = tuple(str(choice) for choice in get_args(plain)) if get_origin(plain) is Literal else ()
        yield Key(
            name=each.encode_name,
            type=_KINDS.get(plain, "STRING"),
            required=each.required,
            default=_shown(None if each.required else each.default),
            importance=extra.get("importance", "HIGH" if each.required else "MEDIUM"),
            documentation=text,
            group=extra.get("group"),
            choices=choices,
            hint=each.type,
        )


def _unwrapped(hint: Any) -> tuple[Any, list[Meta]]:
    """Return the type without its annotations and without ``| None``."""
    metas: list[Meta] = []
    while get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        metas += [note for note in notes if isinstance(note, Meta)]
    if get_origin(hint) in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not type(None)]
        if len(inner) == 1:
            plain, more = _unwrapped(inner[0])
            return plain, metas + more
    return hint, metas


def _shown(default: Any) -> str | None:
    if default is None or default is msgspec.NODEFAULT:
        return None
    if isinstance(default, bool):
        return "true" if default else "false"
    if isinstance(default, list | tuple):
        return ",".join(map(str, default))
    return str(default)


def unknown(key: str) -> str:
    """Return the message for a key that no part of the connector knows."""
    return f"Unknown configuration {key!r}: neither the connector nor its transforms and converters have this key."


def unknown_keys(kind: type[Config], given: Mapping[str, str]) -> list[str]:
    """Return the keys that are not of this configuration."""
    known = {key.name for key in keys_of(kind)}
    return [name for name in given if name not in known and not name.startswith(kind.any_prefix or ("\0",))]


def problems_of(kind: type[Config], given: Mapping[str, str]) -> list[tuple[Key, list[str]]]:
    """Return the keys with what is wrong with the value of each; unknown keys are not looked at."""
    return [(key, _problems(key, given)) for key in keys_of(kind)]


def _problems(key: Key, given: Mapping[str, str]) -> list[str]:
    if key.name not in given or given[key.name] is None:
        return [f'Missing required configuration "{key.name}" which has no default value.'] if key.required else []
    value = given[key.name]
    if key.choices and value not in key.choices:
        return [f"Invalid value {value} for configuration {key.name}: must be one of {', '.join(key.choices)}"]
    try:
        msgspec.convert(_parsed(key, value), key.hint, strict=False, dec_hook=_secret)
    except msgspec.ValidationError as error:
        shown = HIDDEN if key.type == "PASSWORD" else value
        return [f"Invalid value {shown} for configuration {key.name}: {error}"]
    return []


def _parsed(key: Key, value: str) -> Any:
    if key.type == "LIST":
        return [part.strip() for part in value.split(",") if part.strip()]
    if key.type == "BOOLEAN":
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value.strip() if key.type in ("INT", "DOUBLE") else value


def _secret(kind: type[Any], value: Any) -> Any:
    if kind is Secret:
        return Secret(value)
    raise NotImplementedError(f"a configuration field cannot be {kind}")
