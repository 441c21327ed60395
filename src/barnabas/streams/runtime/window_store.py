"""Window stores: values by key and window start, and the rows of one side of a stream-stream join.

Entries expire behind the store's own time, which is the largest window start that was put. Expired entries are not part
of the state any more: a state that is restored drops them again by the same rule, so no deletion is recorded.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from typing import Any, Final

from barnabas.streams.processor import WindowStore as ProcessorWindowStore
from barnabas.streams.runtime.store import TIMESTAMP, ChangelogEntry, StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["JoinStore", "ProcessorWindows", "WindowStore"]

_WINDOW_KEY: Final = struct.Struct(">qi")  # start and a sequence number, which is 0
_LENGTH: Final = struct.Struct(">i")


class _ByStart(StateStore):
    """Entries by key and window start, and the starts in order."""

    def __init__(self, spec: StoreSpec, topic: str, observed: list[int]) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, dict[int, Any]] = {}
        self.observed = observed  # the cell with the store's time
        self._keys_by_start: dict[int, list[Any]] = {}
        self._starts: list[int] = []  # a heap
        self.is_kept = False  # entries expire when their node says so, not by the store's time

    def _is_live(self, start: int) -> bool:
        """Advance the store's time; returns False if the start has already expired."""
        observed = self.observed
        if start > observed[0]:
            observed[0] = start
            limit = start - self.spec.retention_ms
            if self._starts and self._starts[0] <= limit and not self.is_kept:
                self.expire(limit)
            return True
        return self.is_kept or start > observed[0] - self.spec.retention_ms

    def expire(self, limit: int) -> None:
        """Drop the windows that start at a time or before it."""
        starts = self._starts
        while starts and starts[0] <= limit:
            start = heapq.heappop(starts)
            for key in self._keys_by_start.pop(start):
                windows = self.data.get(key)
                if windows is not None:
                    windows.pop(start, None)
                    if not windows:
                        del self.data[key]

    def _note(self, key: Any, start: int) -> None:
        keys = self._keys_by_start.get(start)
        if keys is None:
            self._keys_by_start[start] = [key]
            heapq.heappush(self._starts, start)
        else:
            keys.append(key)

    def _set(self, key: Any, start: int, entry: Any) -> None:
        windows = self.data.get(key)
        if windows is None:
            self.data[key] = {start: entry}
            self._note(key, start)
        else:
            if start not in windows:
                self._note(key, start)
            windows[start] = entry

    def _delete(self, key: Any, start: int) -> None:
        windows = self.data.get(key)
        if windows is not None and windows.pop(start, None) is not None and not windows:
            del self.data[key]

    def starts(self, key: Any, first: int, last: int) -> list[int]:
        """Return the live window starts of a key in a range, in order."""
        windows = self.data.get(key)
        if windows is None:
            return []
        low = first if self.is_kept else max(first, self.observed[0] - self.spec.retention_ms + 1)
        return sorted([start for start in windows if low <= start <= last])

    def packed_key(self, key: Any, start: int) -> bytes:
        """Return the packed key and start of an entry."""
        return self.key_codec.pack(key) + TIMESTAMP.pack(start)

    def unpacked_key(self, data: bytes) -> tuple[Any, int]:
        """Return the key and start of a packed key."""
        return self.key_codec.unpack(data[:-8]), TIMESTAMP.unpack_from(data, len(data) - 8)[0]

    def __len__(self) -> int:
        return sum(map(len, self.data.values()))


class WindowStore(_ByStart):
    """The store of an aggregation over windows: key -> window start -> (value, timestamp)."""

    def __init__(self, spec: StoreSpec, topic: str, observed: list[int]) -> None:
        super().__init__(spec, topic, observed)
        self._pending: list[int] = []  # a heap of the starts of windows that were not emitted yet

    def _note(self, key: Any, start: int) -> None:
        if self.is_kept and start not in self._keys_by_start:
            heapq.heappush(self._pending, start)
        super()._note(key, start)

    def get(self, key: Any, start: int) -> tuple[Any, int] | None:
        """Return value and timestamp of a window, or None."""
        windows = self.data.get(key)
        return None if windows is None else windows.get(start)

    def put(self, key: Any, start: int, value: Any, timestamp: int) -> None:
        """Set the value of a window; None deletes it."""
        if not self._is_live(start):
            return
        if value is None:
            self._delete(key, start)
        else:
            self._set(key, start, (value, timestamp))
        self.changed[key, start] = None

    def keep_until_emitted(self) -> None:
        """Let windows expire only when they were emitted, and note new windows for :meth:`take_closed`."""
        self.is_kept = True

    def take_closed(self, first: int, last: int) -> list[tuple[int, Any, tuple[Any, int]]]:
        """Return start, key and entry of the windows from ``first`` to ``last``, by start and encoded key.

        Windows that start at ``last`` or before it are not returned again.
        """
        found: list[tuple[int, Any, tuple[Any, int]]] = []
        encode = self.key_codec.encode
        while self._pending and self._pending[0] <= last:
            start = heapq.heappop(self._pending)
            if start < first:
                continue
            for key in sorted(dict.fromkeys(self._keys_by_start.get(start, ())), key=encode):
                entry = self.get(key, start)
                if entry is not None:
                    found.append((start, key, entry))
        return found

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        entry = self.get(*key)
        packed = None if entry is None else TIMESTAMP.pack(entry[1]) + self.value_codec.pack(entry[0])
        return self.packed_key(*key), packed

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        pack = self.value_codec.pack
        for key, windows in self.data.items():
            for start, (value, timestamp) in windows.items():
                yield self.packed_key(key, start), TIMESTAMP.pack(timestamp) + pack(value)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found, start = self.unpacked_key(key)
        if value is None:
            self._delete(found, start)
        else:
            self._set(found, start, (self.value_codec.unpack(value[8:]), TIMESTAMP.unpack_from(value)[0]))

    def changelog(self) -> Iterator[ChangelogEntry]:
        encode_key, encode = self.key_codec.encode, self.value_codec.encode
        for key, start in self.changed:
            entry = self.get(key, start)
            encoded = encode_key(key) + _WINDOW_KEY.pack(start, 0)
            if entry is None:
                yield ChangelogEntry(encoded, None, -1)
            else:
                yield ChangelogEntry(encoded, encode(entry[0]), entry[1])


class ProcessorWindows(ProcessorWindowStore[Any, Any]):
    """A window store as a processor sees it, without timestamps of values."""

    def __init__(self, store: WindowStore) -> None:
        self._store = store

    def put(self, key: Any, value: Any, start: int) -> None:
        self._store.put(key, start, value, start)

    def get(self, key: Any, start: int) -> Any:
        found = self._store.starts(key, start, start)
        return self._store.data[key][start][0] if found else None

    def fetch(self, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        for start in self._store.starts(key, first, last):
            entry = self._store.get(key, start)
            if entry is not None:
                yield start, entry[0]


class JoinStore(_ByStart):
    """The rows of one side of a stream-stream join: key -> timestamp -> values, equal ones included."""

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Add a row."""
        if value is None or not self._is_live(timestamp):
            return
        rows = self.data.get(key)
        values = None if rows is None else rows.get(timestamp)
        if values is None:
            self._set(key, timestamp, [value])
        else:
            values.append(value)
        self.changed[key, timestamp] = None

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        rows = self.data.get(key[0])
        values = None if rows is None else rows.get(key[1])
        return self.packed_key(*key), None if values is None else self._pack_all(values)

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, rows in self.data.items():
            for timestamp, values in rows.items():
                yield self.packed_key(key, timestamp), self._pack_all(values)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found, timestamp = self.unpacked_key(key)
        if value is None:
            self._delete(found, timestamp)
        else:
            self._set(found, timestamp, unpack_list(value, self.value_codec.unpack))

    def _pack_all(self, values: list[Any]) -> bytes:
        return pack_list([self.value_codec.pack(value) for value in values])


def pack_list(parts: list[bytes]) -> bytes:
    """Join parts, each after its length."""
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def unpack_list(data: bytes, unpack: Any) -> list[Any]:
    """Split what :func:`pack_list` joined, and unpack each part."""
    found = []
    position = 0
    while position < len(data):
        (size,) = _LENGTH.unpack_from(data, position)
        position += 4
        found.append(unpack(data[position : position + size]))
        position += size
    return found
