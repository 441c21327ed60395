"""Which texts of a configuration are secret, how a configuration is shown without them, and their removal from traces.

Secret are the values of keys that a plugin declares as such, the values of keys whose names look secret (overrides of
client settings, catalog properties and other keys that no plugin declares), and passwords inside of URLs. References
such as ``${env:NAME}`` are shown, since they are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas.connect.config import HIDDEN
from barnabas.connect.references import is_reference

SECRET_LENGTH_MIN: Final = 3  # shorter texts are not removed from traces: they would hit ordinary words
_LOOKS_SECRET: Final = re.compile(r"password|passwd|secret|token|credential|private.?key|api.?key|jaas", re.IGNORECASE)
_URL_PASSWORD: Final = re.compile(r"(?P<before>://[^/@:\s]*:)(?P<password>[^/@\s]+)(?=@)")


def masked(config: Mapping[str, str], declared: Collection[str]) -> dict[str, str]:
    """Return a configuration as it may be shown; ``declared`` are the keys that a plugin declares as secret."""
    return {key: _shown(key, value, declared) for key, value in config.items()}


def unmasked(config: Mapping[str, str], stored: Mapping[str, str] | None) -> dict[str, str]:
    """Return a configuration with hidden values replaced by those that are stored."""
    known = stored or {}
    return {
        key: known[key] if key in known and _is_mask_of(value, known[key]) else value for key, value in config.items()
    }


def secrets_of(config: Mapping[str, str], declared: Collection[str]) -> set[str]:
    """Return the texts of a configuration that must not appear in traces."""
    found = {value for key, value in config.items() if value and _is_secret(key, declared)}
    return found | {match["password"] for value in config.values() for match in _URL_PASSWORD.finditer(value)}


class Redactor:
    """Removes secrets from texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = sorted({each for each in secrets if len(each) >= SECRET_LENGTH_MIN}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, texts))) if texts else None

    def __call__(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)


def _is_secret(key: str, declared: Collection[str]) -> bool:
    return key in declared or _LOOKS_SECRET.search(key) is not None


def _shown(key: str, value: str, declared: Collection[str]) -> str:
    if not value or is_reference(value):
        return value
    return HIDDEN if _is_secret(key, declared) else _without_password(value)


def _without_password(value: str) -> str:
    return _URL_PASSWORD.sub(rf"\g<before>{HIDDEN}", value) if "://" in value else value


def _is_mask_of(value: str, stored: str) -> bool:
    return value == HIDDEN or (HIDDEN in value and value == _without_password(stored))
