"""A record between a connector and a topic: key, value and headers with their schemas, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from barnabas.connect.schemas import Schema

Offset = dict[str, Any]  # JSON object: how far a source has been read


class Header(NamedTuple):
    """A header: keys may occur more than once."""

    key: str
    value: Any = None
    schema: Schema | None = None


@dataclass(slots=True)
class Record:
    """What a source yields and a sink takes. ``partition`` and ``offset`` are set for sinks."""

    topic: str
    value: Any = None
    key: Any = None
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    offset: int | None = None

    def copy(self, **changes: Any) -> Record:
        """Return a copy with some attributes changed."""
        return replace(self, **({"headers": list(self.headers)} | changes))


class Cursor(NamedTuple):
    """How far a polling source has got; yielded after the records that it covers. JSON values only."""

    position: Any


@dataclass(frozen=True, slots=True)
class Part:
    """What one task reads: a range of a source. ``data`` is whatever ``split`` gives and ``read`` needs; picklable."""

    since: Offset
    until: Offset
    data: Any = None


class Limit(NamedTuple):
    """How much one batch of a source should hold at most."""

    records: int
    size_bytes: int


class Entry(NamedTuple):
    """One offset as the REST API shows it: of a partition of the source, or of a topic's partition for a sink."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


class Batch(NamedTuple):
    """Which batch a sink writes. A batch that is replayed has the same ``id`` and the same records per task."""

    sink: str  # stable name of the connector and its generation of offsets
    id: int
    task: int
