"""PLAIN: a name and a password in one message, checked against the users that the settings name.

The users come from ``plain.sasl.jaas.config``, in the notation that Kafka's administrators know. Only that notation is
read: the name of a login module is compared with the one that there is, and nothing is ever loaded by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hmac import compare_digest
from typing import Final

from barnabas.model.settings import InvalidSetting
from barnabas.security.exchange import INVALID_CREDENTIALS, OTHER_USER, SignInFailed

MECHANISM: Final = "PLAIN"
LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER_PREFIX: Final = "user_"
_OPTION: Final = re.compile(r'\s*([^\s="]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)')
_NOBODY: Final = "\0"  # no password holds it


def parse_users(text: str) -> dict[str, str]:
    """Names and passwords from a line of login configuration. What is wrong is said without showing any of it."""
    options = parse_options(text, module=LOGIN_MODULE)
    return {
        name.removeprefix(USER_PREFIX): value
        for name, value in options.items()
        if name.startswith(USER_PREFIX) and len(name) > len(USER_PREFIX)
    }


def parse_options(text: str, *, module: str) -> dict[str, str]:
    """The options of a line of login configuration, which must name just this login module."""
    named, flag, rest = (*text.split(None, 2), "", "", "")[:3]
    if flag.endswith(";") and not rest:  # no options at all
        flag, rest = flag[:-1], ";"
    if named != module:
        raise InvalidSetting(f"the login module must be {module}; no other is known, and none is ever loaded")
    if flag not in ("required", "requisite", "sufficient", "optional"):
        raise InvalidSetting(f"write it as {module} required NAME=VALUE ...;")
    options: dict[str, str] = {}
    position = 0
    body = rest.rstrip()
    while position < len(body) and body[position:].strip() != ";":
        match = _OPTION.match(body, position)
        if match is None:
            raise InvalidSetting('the options must be NAME=VALUE or NAME="VALUE", with a semicolon after the last')
        options[match[1]] = _unquoted(match[2])
        position = match.end()
    if not body.endswith(";"):
        raise InvalidSetting("a semicolon must follow the last option")
    return options


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


class PlainExchange:
    """One sign-in: a single message."""

    mechanism = MECHANISM

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.user: str | None = None
        self.is_complete = False

    def step(self, token: bytes) -> bytes:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise SignInFailed("the PLAIN message is not UTF-8") from None
        if len(parts) != 3:
            raise SignInFailed(f"the PLAIN message has {len(parts)} parts, not 3")
        authorised_as, name, password = parts
        if not name or not password:
            raise SignInFailed("the PLAIN message lacks the user or the password")
        known = self._users.get(name)
        # An unknown name costs the comparison that a known one costs.
        is_right = compare_digest((known if known is not None else _NOBODY).encode(), password.encode())
        self.user = name
        if not is_right or known is None:
            raise SignInFailed(INVALID_CREDENTIALS.format(MECHANISM))
        if authorised_as not in ("", name):
            raise SignInFailed(OTHER_USER)
        self.is_complete = True
        return b""
