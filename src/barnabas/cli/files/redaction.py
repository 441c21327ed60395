"""What must not leave the machine is taken out of texts: passwords that we know, and what is named like one.

Pure. ``debug_bundle.py`` sends every text through here, whatever was hidden before: a line of a log that should hold no
password is still looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.cli.terminal.profiles import HIDDEN, is_secret
from barnabas.observe.log import SECRETS

KNOWN_CHARACTERS_MIN: Final = 3  # a shorter password would take every word apart

# password=…, "sasl.password": "…", password = '…', token: …; the value may be in quotes, plain or escaped ones.
_NAMED: Final = re.compile(
    rf"""([\w.-]*(?:{"|".join(SECRETS)}|user\.info)[\w.-]*)(\\?["']?\s*[=:]\s*)"""
    r"""(\\"(?:(?!\\").)*\\"|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"',;{}\[\]()][^\s"',;}\]]*)""",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(r"(://[^/@:\s]*):[^/@\s]+@")
_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_AUTHORIZATION: Final = re.compile(r"\b(Basic|Bearer) [A-Za-z0-9+/=._~-]{8,}")


class Redaction:
    """``values`` are secrets as they are; they go wherever they stand."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= KNOWN_CHARACTERS_MIN}
        # The longest first: one may be the beginning of another.
        ordered = sorted(known, key=lambda value: (-len(value), value))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = _KEY.sub(HIDDEN, text)
        text = _LOGIN.sub(rf"\1:{HIDDEN}@", text)
        text = _AUTHORIZATION.sub(rf"\1 {HIDDEN}", text)
        return _NAMED.sub(_hidden, text)


def _hidden(found: re.Match[str]) -> str:
    """In the quotes that it had: what reads the text should still be able to."""
    value = found[3]
    if value in ("null", "true", "false", HIDDEN):
        return found[0]
    quote = '\\"' if value.startswith('\\"') else value[0] if value[0] in "\"'" else ""
    return f"{found[1]}{found[2]}{quote}{HIDDEN}{quote}"


def secrets_in(settings: Mapping[str, str]) -> list[str]:
    """The values that are secret by their name, whole and in their parts."""
    found: list[str] = []
    for name, value in settings.items():
        if is_secret(name):
            found += [value, *re.findall(r"""(?:password|secret|user_[^=\s]*)\s*=\s*["']?([^"';\s]+)""", value)]
            if "user.info" in name:
                found.append(value.partition(":")[2])
        found += re.findall(r"://[^/@:\s]*:([^/@\s]+)@", value)
    return [value for value in found if value]
