"""The contents of one partition of a store, made from the records of its changelog topic. Pure.

Keys and values stay bytes until they are asked for. Rows are in the order of the encoded keys, as in Kafka.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.streams.catalog.application import StoreEntry
from barnabas.streams.errors import StateCorrupt

__all__ = ["Contents", "StoredRow", "contents_of"]

ENTRY_BYTES: Final = 200  # of memory that an entry needs beside its key and value
_WINDOW: Final = struct.Struct(">qi")  # start, and a sequence number that is 0
_SESSION: Final = struct.Struct(">qq")  # end, then start
FOREVER: Final = 2**63 - 1


class StoredRow(NamedTuple):
    """An entry of a store: bytes of key and value, the timestamp, and start and end of its window or validity."""

    key: bytes
    value: bytes
    timestamp: int
    start: int = 0
    end: int = 0


class Contents(ABC):
    """One partition. ``size`` is about the number of bytes of memory that it needs."""

    def __init__(self, entry: StoreEntry) -> None:
        self.entry = entry
        self.size = 0

    @abstractmethod
    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Apply a record of the changelog; a null value deletes an entry."""

    @abstractmethod
    def rows(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[StoredRow]:
        """All entries of a range of keys, both ends included."""

    @abstractmethod
    def of_key(self, key: bytes) -> list[StoredRow]:
        """All entries of one key, in order of time."""

    def _grow(self, key: bytes, before: bytes | None, after: bytes | None, *, is_known: bool, is_left: bool) -> None:
        self.size += len(after or b"") - len(before or b"")
        self.size += (ENTRY_BYTES + len(key)) * (int(is_left) - int(is_known))


class KeyValueContents(Contents):
    def __init__(self, entry: StoreEntry) -> None:
        super().__init__(entry)
        self._data: dict[bytes, tuple[bytes, int]] = {}

    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        before = self._data.pop(key, None)
        if value is not None:
            self._data[key] = value, timestamp
        old = None if before is None else before[0]
        self._grow(key, old, value, is_known=before is not None, is_left=value is not None)

    def rows(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[StoredRow]:
        for key in sorted(_between(self._data, first, last)):
            yield StoredRow(key, *self._data[key])

    def of_key(self, key: bytes) -> list[StoredRow]:
        found = self._data.get(key)
        return [] if found is None else [StoredRow(key, *found)]


class WindowContents(Contents):
    """Windows or sessions of keys. Those that are older than the retention have expired, as in the store."""

    def __init__(self, entry: StoreEntry) -> None:
        super().__init__(entry)
        self._is_session = entry.kind == "session"
        self._layout = _SESSION if self._is_session else _WINDOW
        self._data: dict[bytes, dict[tuple[int, int], tuple[bytes, int]]] = {}  # key -> (start, end) -> entry
        self._observed = -1  # the largest window start, or end of a session

    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        if len(key) < self._layout.size:
            raise StateCorrupt(f"a key of {self.entry.topic} has {len(key)} bytes, which is too short for a window")
        one, other = self._layout.unpack_from(key, len(key) - self._layout.size)
        window = (other, one) if self._is_session else (one, one + self.entry.size_ms)
        self._observed = max(self._observed, one)
        inner = key[: -self._layout.size]
        windows = self._data.setdefault(inner, {})
        before = windows.pop(window, None)
        if value is not None:
            windows[window] = value, timestamp
        elif not windows:
            del self._data[inner]
        old = None if before is None else before[0]
        self._grow(inner, old, value, is_known=before is not None, is_left=value is not None)

    def rows(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[StoredRow]:
        for key in sorted(_between(self._data, first, last)):
            yield from self.of_key(key)

    def of_key(self, key: bytes) -> list[StoredRow]:
        found = []
        limit = self._observed - self.entry.retention_ms if self.entry.retention_ms else -1
        for (start, end), (value, timestamp) in sorted(self._data.get(key, {}).items()):
            if (end if self._is_session else start) > limit:
                found.append(StoredRow(key, value, timestamp, start, end))
        return found


class VersionedContents(Contents):
    """Versions of keys, each valid from its timestamp until the next one; a deletion ends the one before it."""

    def __init__(self, entry: StoreEntry) -> None:
        super().__init__(entry)
        self._data: dict[bytes, dict[int, bytes | None]] = {}
        self._observed = -1

    def apply(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        self._observed = max(self._observed, timestamp)
        versions = self._data.setdefault(key, {})
        is_known = timestamp in versions
        self._grow(key, versions.get(timestamp), value, is_known=is_known, is_left=True)
        versions[timestamp] = value
        times = sorted(versions)
        ended = bisect_right(times, self._observed - self.entry.retention_ms) - 1
        for old in times[: max(0, ended)]:
            self._grow(key, versions.pop(old), None, is_known=True, is_left=False)

    def rows(self, first: bytes | None = None, last: bytes | None = None) -> Iterator[StoredRow]:
        """The newest versions."""
        for key in sorted(_between(self._data, first, last)):
            newest = self.of_key(key)[-1:]
            if newest and newest[0].end == FOREVER:
                yield newest[0]

    def of_key(self, key: bytes) -> list[StoredRow]:
        versions = sorted(self._data.get(key, {}).items())
        ends = [time for time, _ in versions[1:]] + [FOREVER]
        return [
            StoredRow(key, value, time, time, end)
            for (time, value), end in zip(versions, ends, strict=True)
            if value is not None
        ]


def contents_of(entry: StoreEntry) -> Contents:
    """Empty contents of a partition of a store."""
    if entry.kind in ("window", "session"):
        return WindowContents(entry)
    return VersionedContents(entry) if entry.kind == "versioned" else KeyValueContents(entry)


def _between(keys: Iterable[bytes], first: bytes | None, last: bytes | None) -> Iterator[bytes]:
    return (key for key in keys if (first is None or key >= first) and (last is None or key <= last))
