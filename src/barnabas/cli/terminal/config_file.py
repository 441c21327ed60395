"""Settings from a file: Java's ``server.properties`` or, by its ending, TOML with the same names.

What the names mean and which values are right is for ``broker.settings`` and the clients' to say; here text becomes
names and texts. Brokers, profiles and the files of client settings are read by it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from barnabas.model.settings import InvalidSetting

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
# A name ends at the first separator that is not escaped; white space separates too, and may surround = or :.
_PROPERTY: Final = re.compile(r"((?:\\.|[^\\=:\s])*)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)


def read_config(path: Path) -> dict[str, str]:
    try:
        text = path.read_text()
        return dict(_flatten(tomllib.loads(text)) if path.suffix == ".toml" else properties(text))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"{path}: {error}") from error


def properties(text: str) -> Iterator[tuple[str, str]]:
    """Each name and value, as Java reads them: comments, continued lines, escapes."""
    for line in _logical_lines(text):
        found = _PROPERTY.fullmatch(line)
        assert found is not None, "every line matches"
        yield _unescaped(found[1]), _unescaped(found[2])


def _logical_lines(text: str) -> Iterator[str]:
    whole = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not whole and (not stripped or stripped[0] in "#!"):
            continue
        whole += stripped
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            whole = whole[:-1]
            continue
        yield whole.rstrip()
        whole = ""
    if whole:
        yield whole


def _unescaped(text: str) -> str:
    def meant(found: re.Match[str]) -> str:
        character = found[1]
        return chr(int(character[1:], 16)) if len(character) > 1 else _ESCAPES.get(character, character)

    return _ESCAPE.sub(meant, text)


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield prefix + name, str(value).lower()
        elif isinstance(value, list):
            yield prefix + name, ",".join(map(str, value))
        else:
            yield prefix + name, str(value)
