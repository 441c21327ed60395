"""The options of source and sink, by the names that Spark's own Kafka connector has for them: read, checked, typed.

Names are compared without regard to case, as everywhere in Spark; ``kafka.*`` goes to the client. Pure: nothing here
asks a cluster, so a wrong option is told before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from barnabas.client.settings.client import Settings
from barnabas.model.settings import InvalidSetting
from barnabas.spark.errors import InvalidOption

S = TypeVar("S", bound=Settings)

CLIENT_PREFIX: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"
_REFUSED: Final = {
    "auto.offset.reset": "say startingOffsets instead",
    "key.deserializer": "key is binary: decode it with a cast or a function of Spark",
    "value.deserializer": "value is binary: decode it with a cast or a function of Spark",
    "key.serializer": "key is written as it is: encode it with a function of Spark",
    "value.serializer": "value is written as it is: encode it with a function of Spark",
    "enable.auto.commit": "what was read is kept in the checkpoint; the group follows it",
    "interceptor.classes": "there are none; change the records with a function of Spark",
}
_DURATION_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_JAAS: Final = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
# What Java's clients want and ours does in its own way, whatever is said.
_OF_JAVA: Final = frozenset({"sasl.jaas.config"})


@dataclass(frozen=True, slots=True)
class Options:
    """What was said, in lower case, and the few ways to ask for it."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        return cls({name.lower(): str(value) for name, value in given.items()})

    def text(self, name: str, default: str | None = None) -> str | None:
        value = self.values.get(name.lower())
        return default if value is None else value.strip()

    def has(self, name: str) -> bool:
        return name.lower() in self.values

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise InvalidOption(f"{name}={value!r}: say true or false")
        return value.lower() == "true"

    def number(self, name: str, default: int | None = None, *, minimum: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise InvalidOption(f"{name}={value!r} is not a number") from None
        if number < minimum:
            raise InvalidOption(f"{name}={value!r} is below {minimum}")
        return number

    def duration_ms(self, name: str, default_ms: int) -> int:
        """``15m``, ``500ms``, or a bare number of milliseconds."""
        value = self.text(name)
        if value is None:
            return default_ms
        match = re.fullmatch(r"(\d+)\s*([a-z]*)", value.lower())
        if match is None or (match[2] and match[2] not in _DURATION_UNITS_MS):
            raise InvalidOption(f"{name}={value!r} is no duration: write it like 500ms, 90s or 15m")
        return int(match[1]) * _DURATION_UNITS_MS.get(match[2], 1)

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        value = self.text(name, default) or default
        known = tuple(choices)
        if value.lower() not in known:
            raise InvalidOption(f"{name}={value!r}: say {' or '.join(known)}")
        return value.lower()

    def refuse(self, names: Iterable[str], reason: str) -> None:
        for name in names:
            if self.has(name):
                raise InvalidOption(f"{name}: {reason}")

    def client(self, kind: type[S], defaults: Mapping[str, str]) -> dict[str, str]:
        """The client's settings: our defaults, then what ``kafka.*`` says; checked, and kept as text to travel."""
        if not self.text(SERVERS):
            raise InvalidOption(f"{SERVERS} is missing: say where the cluster is, as in 127.0.0.1:9092")
        told = {
            name.removeprefix(CLIENT_PREFIX): value
            for name, value in self.values.items()
            if name.startswith(CLIENT_PREFIX)
        }
        for name, hint in _REFUSED.items():
            if name in told:
                raise InvalidOption(f"kafka.{name} cannot be set here: {hint}")
        told |= _signed_in(told)
        settings = dict(defaults) | {name: value for name, value in told.items() if name not in _OF_JAVA}
        try:
            kind.of(settings)
        except InvalidSetting as error:
            raise InvalidOption(f"kafka.{error}") from error
        return settings


def _signed_in(told: Mapping[str, str]) -> dict[str, str]:
    """Name and password out of ``sasl.jaas.config``, where Java's clients have them."""
    found = dict(_JAAS.findall(told.get("sasl.jaas.config", "")))
    return {f"sasl.{name}": value for name, value in found.items() if f"sasl.{name}" not in told}


def has_formats(given: Mapping[str, str]) -> bool:
    """Whether keys or values are of a schema registry: ``value.format``, ``key.format``."""
    return any(name.lower() in ("key.format", "value.format") for name in given)
