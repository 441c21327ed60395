"""The records that every client writes and reads in the compatibility tests, and the shape in which they are compared.

No client and no broker lives here: the adapters of `clients.py` turn these into their own objects and back.
"""

from __future__ import annotations

from typing import TypedDict

Headers = list[tuple[str, bytes | None]]


class SentRecord(TypedDict):
    """What a test asks a client to write to partition 0. Without a timestamp the client takes its own clock."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int | None


class ReadRecord(TypedDict):
    """What a client read."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    offset: int
    timestamp: int


def record(
    value: bytes | None, *, key: bytes | None = None, headers: Headers | None = None, timestamp: int | None = None
) -> SentRecord:
    return {"key": key, "value": value, "headers": headers or [], "timestamp": timestamp}


def contents(records: list[SentRecord] | list[ReadRecord]) -> list[tuple[bytes | None, bytes | None, Headers]]:
    """What must survive the way through any broker, whoever wrote and whoever read."""
    return [(one["key"], one["value"], one["headers"]) for one in records]


def samples(now_ms: int) -> list[SentRecord]:
    """One record of every shape that the protocol has a word for."""
    return [
        record(b"plain", key=b"key", timestamp=now_ms),
        record(b"no key", timestamp=now_ms + 1),
        record(None, key=b"a tombstone", timestamp=now_ms + 2),
        record(None, timestamp=now_ms + 3),
        record(b"", key=b"an empty value", timestamp=now_ms + 4),
        record(b"an empty key", key=b"", timestamp=now_ms + 5),
        record(bytes(range(256)) * 4, key=bytes(range(256)), timestamp=now_ms + 6),
        record(b"compresses well " * 500, key=b"long", timestamp=now_ms + 7),
        record(b"one header", headers=[("name", b"value")], timestamp=now_ms + 8),
        record(b"doubled", headers=[("name", b"1"), ("other", b""), ("name", b"2")], timestamp=now_ms + 9),
        record(b"letters of the world", headers=[("ключ-キー", "значение".encode())], timestamp=now_ms + 10),
        record(b"many headers", headers=[(f"h{n}", bytes([n])) for n in range(50)], timestamp=now_ms + 11),
        record(b"a header without a value", headers=[("null", None), ("empty", b"")], timestamp=now_ms + 12),
    ]
