"""Which names a topic may bear, and which of them collide.

A name becomes a directory and a metric, which is where every rule here comes from. Nothing here knows which topics
exist; the topics' decisions ask, and so do the handlers that create topics on their own.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.model.errors import INVALID_TOPIC_EXCEPTION, ApiError
from barnabas.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

NAME_LENGTH_MAX: Final = 249  # a directory is named <topic>-<partition>, or <topic>.<32 hex digits>-delete
INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC))

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def reason_invalid(name: str) -> str | None:
    """Why no topic may be called that, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless a topic may be called that."""
    reason = reason_invalid(name)
    if reason is not None:
        raise ApiError(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """What a metric makes of the name. Two topics that differ only in '.' and '_' would share their metrics."""
    return name.replace(".", "_")
