"""The most expensive legal requests of every API, made from the declarations of the messages, and their cost.

``shapes`` gives a request with many rows in each of its arrays in turn. ``TurnWatch`` measures how much CPU one turn
of a broker's event loop takes: the time during which no other connection is served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from talk import batch

from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.schema import Array, Fixed, Nested

KNOWN_TOPICS = [f"known-{number:04}" for number in range(300)]

_FACTS: dict[str, Any] = {
    "acks": -1,
    "timeout_ms": 1000,
    "max_wait_ms": 10,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "partition_max_bytes": 1 << 20,
    "max_bytes": 1 << 20,
    "min_bytes": 1,
    "session_epoch": -1,
    "session_id": 0,
    "replica_id": -1,
    "timestamp": -1,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "resource_type": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 1,
    "resource_type_filter": 1,
    "permission_type": 3,
    "operation": 3,
    "principal": "User:x",
    "host": "*",
    "response_partition_limit": 2000,
    "client_software_name": "talk",
    "client_software_version": "1.0",
    "endpoint_type": 1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2,
    "group_id": "costly",
    "member_id": "",
    "generation_id_or_member_epoch": -1,
    "transactional_id": None,
    "validate_only": True,
    "include_synonyms": True,
    "include_documentation": True,
    "protocol_type": "consumer",
    "quorum": 0,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
}
_TOPIC_FIELDS = {"name", "topic", "topic_name", "topic_names", "resource_name", "subscribed_topic_names"}
_INDEX_FIELDS = {"partition_index", "partition", "index", "partitions", "partition_indexes", "partition_id"}


def arrays(cls: Any, version: int, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays of a message."""
    for field in cls.fields:
        if not field.is_in(version) or (field.tag or 0) >= 10_000:
            continue
        kind = field.type
        if isinstance(kind, Array):
            yield (*path, field.name)
            kind = kind.element
        if isinstance(kind, Nested):
            yield from arrays(kind.target, version, (*path, field.name))


def filled(cls: Any, version: int, long: tuple[str, ...], rows: int, names: list[str], number: int = 0) -> Any:
    """A message with one element in every array, and ``rows`` elements in the array at the path ``long``."""
    message = cls()
    for field in cls.fields:
        if not field.is_in(version) or (field.tag or 0) >= 10_000:
            continue
        inner = long[1:] if long and long[0] == field.name else ()
        is_long = bool(long) and long == (field.name,)
        value = _value(field, field.type, version, inner, rows if is_long else 1, names, rows, number)
        if value is not None:
            setattr(message, field.name, value)
    return message


def _value(
    field: Any, kind: Any, version: int, inner: tuple[str, ...], count: int, names: list[str], rows: int, number: int
) -> Any:
    if isinstance(kind, Array):
        made = []
        for index in range(count):
            place = index if count > 1 else number
            element = _value(field, kind.element, version, inner, 1, names, rows, place)
            if element is None:
                element = 0 if isinstance(kind.element, Fixed) else f"x{place}"
            made.append(element)
        return made
    if isinstance(kind, Nested):
        return filled(kind.target, version, inner, rows, names, number)
    if field.name in _TOPIC_FIELDS and kind.name == "string":
        return names[number % len(names)]
    if field.name in _INDEX_FIELDS:
        return number
    if field.name == "topic_id":
        return Uuid(number.to_bytes(16))
    if field.name == "records":
        return bytes(batch(b"value"))
    if field.name == "group" and kind.name == "string":
        return f"g{number}"
    if field.name in _FACTS:
        return _FACTS[field.name]
    if kind.name == "string" and not field.is_nullable(version):
        return f"x{number}"
    return None


def shapes(cls: type[Message], version: int, rows: int) -> Iterator[tuple[str, Any]]:
    """Requests with many rows: unknown names, known names, one name again and again; in each array in turn."""
    paths = list(arrays(cls, version))
    kinds = {
        "unknown": [f"u{number}" for number in range(rows)],
        "known": KNOWN_TOPICS,
        "same": KNOWN_TOPICS[:1],
    }
    if not paths:
        yield "default", filled(cls, version, (), 1, KNOWN_TOPICS)
    for path in paths:
        for kind, names in kinds.items():
            yield f"{'.'.join(path)} {kind}", filled(cls, version, path, rows, names)
    everything = filled(cls, version, (), 1, KNOWN_TOPICS)
    for field in cls.fields:
        if field.is_in(version) and isinstance(field.type, Array):
            setattr(everything, field.name, None if field.is_nullable(version) else [])
    yield "everything", everything


class TurnWatch:
    """Measures the CPU time of every callback of an asyncio event loop; ``longest_ms`` since the last ``reset``."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self.longest = ""  # the callback that took longest
        self.total_ms = 0.0
        self.thread: int | None = None

    def install(self, monkeypatch: Any) -> None:
        run = asyncio.events.Handle._run
        watch = self

        def timed(handle: Any) -> None:
            import threading

            if threading.get_ident() != watch.thread:
                run(handle)
                return
            started = time.thread_time()
            run(handle)
            spent_ms = (time.thread_time() - started) * 1000
            watch.total_ms += spent_ms
            if spent_ms > watch.longest_ms:
                watch.longest_ms, watch.longest = spent_ms, repr(handle)

        monkeypatch.setattr(asyncio.events.Handle, "_run", timed)

    def reset(self) -> None:
        self.longest_ms = self.total_ms = 0.0
