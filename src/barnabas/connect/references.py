"""References in configurations: ``${env:NAME}``, ``${file:PATH:KEY}`` and ``${dir:PATH:FILE}``.

They are stored and shown as they were given, and resolved only where a connector runs. ``secrets.Redactor`` removes
what they resolve to from traces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from barnabas.connect.errors import ConfigError

FILE_BYTES_MAX: Final = 1024 * 1024
_REFERENCE: Final = re.compile(r"\$\{(env|file|dir):([^}]*)\}")


class Resolver:
    """Resolves references. ``allowed_paths`` restricts files and directories; without it all are allowed."""

    def __init__(self, environment: Mapping[str, str] | None = None, allowed_paths: Iterable[str] = ()) -> None:
        self._environment = os.environ if environment is None else environment
        self._allowed = [Path(each).resolve() for each in allowed_paths]

    def resolve(self, given: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
        """Return the configuration with references replaced, and the texts that replaced them."""
        found: set[str] = set()

        def replaced(match: re.Match[str]) -> str:
            value = self._value(match[1], match[2])
            found.add(value)
            return value

        return {key: _REFERENCE.sub(replaced, value) for key, value in given.items()}, found

    def _value(self, provider: str, rest: str) -> str:
        if provider == "env":
            name = rest.removeprefix(":")
            if name not in self._environment:
                raise ConfigError(f"${{env:{name}}}: the environment of the worker has no variable {name}")
            return self._environment[name]
        path, separator, key = rest.rpartition(":")
        if not separator:
            raise ConfigError(f"${{{provider}:{rest}}}: expected ${{{provider}:PATH:KEY}}")
        if provider == "dir":
            return self._text(Path(path) / key, f"${{dir:{rest}}}").rstrip("\n")
        properties = _properties(self._text(Path(path), f"${{file:{rest}}}"))
        if key not in properties:
            raise ConfigError(f"${{file:{rest}}}: the file has no key {key}")
        return properties[key]

    def _text(self, path: Path, shown: str) -> str:
        real = path.resolve()
        if self._allowed and not any(real.is_relative_to(each) for each in self._allowed):
            raise ConfigError(f"{shown}: the path is outside of config.providers.allowed.paths")
        try:
            with real.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise ConfigError(f"{shown}: {error.strerror}") from error
        if len(data) > FILE_BYTES_MAX:
            raise ConfigError(f"{shown}: the file is larger than {FILE_BYTES_MAX} bytes")
        return data.decode(errors="replace")


def is_reference(value: str) -> bool:
    """Return whether a value refers to something outside of the configuration."""
    return _REFERENCE.search(value) is not None


def _properties(text: str) -> dict[str, str]:
    """Return keys and values of a Java properties file, without its escapes of characters."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            match = re.match(r"([^=:\s]+)\s*[=:\s]\s*(.*)", stripped)
            if match is not None:
                found[match[1]] = match[2]
    return found
