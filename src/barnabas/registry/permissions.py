"""What an authenticated user may do with a subject, from a TOML file of rules; without a file everything is allowed.

A rule is ``[[allow]]`` with ``users``, ``subjects`` (patterns as of a shell) and ``operations``. Settings of all
subjects (the global level and mode) need ``configure`` for the subject ``*``.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from barnabas.model.settings import InvalidSetting
from barnabas.rest.errors import RestError

OPERATIONS: Final = ("read", "write", "delete", "configure")
ALL: Final = "*"
FORBIDDEN: Final = 403


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    users: list[str]
    subjects: list[str]
    operations: list[str]


class Permissions:
    def __init__(self, rules: list[Rule] | None = None) -> None:
        """None allows everything."""
        self._rules = rules

    @classmethod
    def read(cls, path: Path) -> Permissions:
        try:
            rules = msgspec.convert(tomllib.loads(path.read_text()).get("allow", []), list[Rule])
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise InvalidSetting(f"{path}: {error}") from None
        for rule in rules:
            for each in rule.operations:
                if each not in OPERATIONS:
                    raise InvalidSetting(f"{path}: the operation {each!r} is none of {', '.join(OPERATIONS)}")
        return cls(rules)

    def allows(self, user: str | None, operation: str, subject: str | None) -> bool:
        """``subject`` is None for what concerns all subjects."""
        if self._rules is None:
            return True
        return any(
            operation in rule.operations
            and (ALL in rule.users or (user is not None and user in rule.users))
            and any(each == ALL or (subject is not None and fnmatchcase(subject, each)) for each in rule.subjects)
            for rule in self._rules
        )

    def check(self, user: str | None, operation: str, subject: str | None) -> None:
        if not self.allows(user, operation, subject):
            about = "all subjects" if subject is None else f"subject '{subject}'"
            raise RestError(FORBIDDEN, f"the user {user or 'without a name'} may not {operation} {about}", code=40301)
