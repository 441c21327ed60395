"""Descriptions of state stores: kind, serdes, retention, and whether changes are written to a changelog topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from barnabas.streams.serdes import SerdeLike

__all__ = ["StoreKind", "StoreSpec"]

StoreKind: TypeAlias = Literal[
    "key_value",
    "timestamped",
    "window",
    "session",
    "versioned",
    "join",
    "outer_join",
    "suppress",
    "buffer",
    "subscription",
]


@dataclass(frozen=True)
class StoreSpec:
    """One state store of a topology.

    name: name of the store; the changelog topic is named after it.
    kind: ``timestamped`` stores keep a timestamp with each value, ``key_value`` stores do not; ``join``,
        ``outer_join``, ``suppress``, ``buffer`` and ``subscription`` stores belong to operators.
    key, value: serdes.
    other_value: serde of the values of the right side, in the store that both sides of an outer join share.
    retention_ms: how long entries of windows, sessions and old versions are kept, behind stream time.
    size_ms: size of the windows.
    ttl_ms: time to live of an entry, behind stream time; None keeps entries until they are deleted.
    is_named: the user chose the name, so the store has a changelog topic.
    """

    name: str
    kind: StoreKind
    key: SerdeLike[Any] | None = None
    value: SerdeLike[Any] | None = None
    retention_ms: int = 0
    size_ms: int = 0
    ttl_ms: int | None = None
    is_named: bool = False
    other_value: SerdeLike[Any] | None = None
