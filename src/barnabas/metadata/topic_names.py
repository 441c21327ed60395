"""Which names a topic may bear, and which of them collide.

A name becomes a directory and a metric, which is where every rule here comes from. Nothing here knows which topics
exist; the topics' decisions ask, and so do the handlers that create topics on their own.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.model.errors import INVALID_TOPIC_EXCEPTION, ApiError
from barnabas.model.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

NAME_LENGTH_MAX: Final = 249  # a directory is named <topic>-<partition>, or <topic>.<32 hex digits>-delete
INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC))

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def reason_invalid(name: str) -> str | None:
    """Why no topic may be called that, or None."""
    if not name:
        return "a topic has a name"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > NAME_LENGTH_MAX:
        return f"a topic's name of {len(name)} characters is too long; {NAME_LENGTH_MAX} are allowed"
    if not _LEGAL.fullmatch(name):
        return f"a topic's name has only ASCII letters, digits, '.', '_' and '-'; {name!r} has others"
    return None


def check(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION unless a topic may be called that."""
    reason = reason_invalid(name)
    if reason is not None:
        raise ApiError(INVALID_TOPIC_EXCEPTION, reason)


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def can_collide(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """What a metric makes of the name. Two topics that differ only in '.' and '_' would share their metrics."""
    return name.replace(".", "_")
