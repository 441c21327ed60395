"""What a setting is: declared once, with its type, range, default, text and when a change takes effect.

The settings themselves live beside what they govern (``storage/settings.py``, ``broker/settings/broker.py``). This
module reads values from text, checks them and suggests the right name for a misspelt one; it knows no setting by
name.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.model.errors import BarnabasError

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


class InvalidSetting(BarnabasError):
    """A name that does not exist or a value that is out of range; the sentence says what would be right."""


class Kind(enum.Enum):
    """Types as DescribeConfigs numbers them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(enum.Enum):
    """When a change takes effect."""

    READ_ONLY = "read-only"  # at the next start
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_RANGES: Final = {
    Kind.SHORT: (-(2**15), 2**15 - 1),
    Kind.INT: (-(2**31), INT32_MAX),
    Kind.LONG: (-(2**63), INT64_MAX),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    name: str
    kind: Kind
    default: Any
    doc: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    update: Update = Update.READ_ONLY
    sensitive: bool = False
    synonyms: tuple[str, ...] = ()  # for a topic setting: the broker settings that give its default, nearest first
    check: Callable[[Any], str | None] | None = None  # a sentence if the value is wrong
    per_listener: bool = False  # may be given while running, but for one listener: listener.name.<name>.<setting>
    unused: bool = False  # Kafka has it, and here there is nothing for it to govern; ``doc`` says why

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Any:
        """The value that a text means, or InvalidSetting with a sentence."""
        try:
            value = _READERS[self.kind](text.strip() if self.kind is not Kind.PASSWORD else text)
        except ValueError:
            raise InvalidSetting(f"{self.name}={text!r} is not {_ARTICLES[self.kind]}") from None
        return self.checked(value)

    def checked(self, value: Any) -> Any:
        lowest, highest = _RANGES.get(self.kind, (None, None))
        low = self.minimum if self.minimum is not None else lowest
        high = self.maximum if self.maximum is not None else highest
        if low is not None and value < low:
            raise InvalidSetting(f"{self.name}={value} must be at least {low}")
        if high is not None and value > high:
            raise InvalidSetting(f"{self.name}={value} must be at most {high}")
        if self.choices:
            for chosen in value if self.kind is Kind.LIST else (value,):
                if chosen not in self.choices:
                    raise InvalidSetting(f"{self.name}={chosen!r} must be one of {', '.join(self.choices)}")
        problem = self.check(value) if self.check else None
        if problem:
            raise InvalidSetting(f"{self.name}: {problem}")
        return value

    def text(self, value: Any) -> str | None:
        """The value as DescribeConfigs prints it."""
        if value is None:
            return None
        if self.kind is Kind.BOOLEAN:
            return "true" if value else "false"
        if self.kind is Kind.LIST:
            return ",".join(value)
        return str(value)


def setting(name: str, kind: Kind, default: Any, doc: str, **more: Any) -> Setting:
    """A declaration as it is written in a table: what every setting has comes first, and in this order."""
    return Setting(name=name, kind=kind, default=default, doc=doc, **more)


def _read_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _read_whole(text: str) -> int:
    # Python reads 1_000 and the digits of every script; other readers of the same setting do not.
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _read_number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS: Final[Mapping[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: _read_boolean,
    Kind.STRING: str,
    Kind.INT: _read_whole,
    Kind.SHORT: _read_whole,
    Kind.LONG: _read_whole,
    Kind.DOUBLE: _read_number,
    Kind.LIST: _read_list,
    Kind.CLASS: str,
    Kind.PASSWORD: str,
    Kind.UNKNOWN: str,
}
_ARTICLES: Final[Mapping[Kind, str]] = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "text",
    Kind.INT: "a whole number",
    Kind.SHORT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a comma-separated list",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "text",
    Kind.UNKNOWN: "text",
}


class SettingTable:
    """All settings of one kind of thing, by name."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        self._by_name = {setting.name: setting for setting in settings}

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Setting:
        setting = self._by_name.get(name)
        if setting is None:
            raise InvalidSetting(f"there is no setting {name!r}{self.suggestion(name)}")
        return setting

    def parse(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """The values that texts mean, by name; only those that were given."""
        return {name: self[name].parse(text) for name, text in texts.items()}

    def filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A value for each setting of this table: as given, by name, or its default."""
        return {each.name: values.get(each.name, each.default) for each in self}

    def suggestion(self, name: str) -> str:
        """The end of a sentence about a name that does not exist: which one may have been meant."""
        near = difflib.get_close_matches(name, self._by_name, n=1)
        return f"; did you mean {near[0]!r}?" if near else ""
