"""What the readers of ``dump`` find in a file: rows, and places where it is broken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from barnabas.model.ids import NO_TIMESTAMP


class Row(NamedTuple):
    kind: str
    facts: Mapping[str, object]


class Broken(NamedTuple):
    position: int | None  # in bytes, where that is known
    why: str


Finding: TypeAlias = Row | Broken


def shown_time(timestamp_ms: int) -> str | None:
    if timestamp_ms == NO_TIMESTAMP:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return str(timestamp_ms)  # nothing keeps a producer from writing the year 300000
