"""Session stores: values by key and session. Sessions expire behind the largest session end that was put."""

from __future__ import annotations

import heapq
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from barnabas.streams.processor import SessionStore as ProcessorSessionStore
from barnabas.streams.runtime.store import ChangelogEntry, StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["ProcessorSessions", "SessionStore"]

_SESSION: Final = struct.Struct(">qq")  # end, then start, so that the bytes sort like Kafka's


class SessionStore(StateStore):
    """The store of an aggregation over sessions: key -> (end, start) -> value."""

    def __init__(self, spec: StoreSpec, topic: str, observed: list[int]) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, dict[tuple[int, int], Any]] = {}
        self.observed = observed  # the cell with the store's time
        self._swept = observed[0]
        self._is_kept = False
        self._pending: list[tuple[int, int, bytes, Any]] = []  # a heap of sessions that were not emitted yet
        self._emitted: deque[tuple[int, int, Any]] = deque()

    def keep_until_emitted(self) -> None:
        """Let sessions expire only when they were emitted, and note new sessions for :meth:`take_closed`."""
        self._is_kept = True

    @property
    def _limit(self) -> int:
        """Sessions that end at this time or before it have expired."""
        return self.observed[0] - self.spec.retention_ms

    def put(self, key: Any, start: int, end: int, value: Any) -> None:
        """Set the value of a session; None deletes it."""
        if end > self.observed[0]:
            self.observed[0] = end
            if end - self._swept > self.spec.retention_ms and not self._is_kept:
                self._sweep(end)
        if end <= self._limit and not self._is_kept:
            return
        if value is None:
            self.remove(key, start, end)
        else:
            self._set(key, start, end, value)
            self.changed[key, end, start] = None

    def _set(self, key: Any, start: int, end: int, value: Any) -> None:
        self.data.setdefault(key, {})[end, start] = value
        if self._is_kept:
            heapq.heappush(self._pending, (end, start, self.key_codec.encode(key), key))

    def remove(self, key: Any, start: int, end: int) -> None:
        """Delete a session."""
        self._forget(key, start, end)
        self.changed[key, end, start] = None

    def _forget(self, key: Any, start: int, end: int) -> None:
        sessions = self.data.get(key)
        if sessions is not None and sessions.pop((end, start), None) is not None and not sessions:
            del self.data[key]

    def get(self, key: Any, start: int, end: int) -> Any:
        """Return the value of a session, or None."""
        sessions = self.data.get(key)
        return None if sessions is None else sessions.get((end, start))

    def find(self, key: Any, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """Return start, end and value of the live sessions of a key that overlap a range, by end and start."""
        sessions = self.data.get(key)
        if sessions is None:
            return []
        low = max(earliest_end, self._limit + 1)
        found = [(end, start) for end, start in sessions if end >= low and start <= latest_start]
        if len(found) > 1:
            found.sort()
        return [(start, end, sessions[end, start]) for end, start in found]

    def take_closed(self, first_end: int, last_end: int) -> list[tuple[int, int, Any, Any]]:
        """Return start, end, key and value of the sessions that end in a range, in order.

        Sessions that end at ``last_end`` or before it are not returned again; they expire by the retention.
        """
        found = []
        before = None
        while self._pending and self._pending[0][0] <= last_end:
            end, start, encoded, key = heapq.heappop(self._pending)
            value = self.get(key, start, end)
            # A session that was updated without being extended is in the heap more than once.
            if value is not None and before != (end, start, encoded):
                before = (end, start, encoded)
                self._emitted.append((end, start, key))
                if end >= first_end:
                    found.append((start, end, key, value))
        while self._emitted and self._emitted[0][0] <= self._limit:
            end, start, key = self._emitted.popleft()
            self._forget(key, start, end)
        return found

    def _sweep(self, now: int) -> None:
        """Drop expired sessions, at most once for each retention period."""
        self._swept = now
        limit = now - self.spec.retention_ms
        for key in list(self.data):
            sessions = self.data[key]
            for session in [session for session in sessions if session[0] <= limit]:
                del sessions[session]
            if not sessions:
                del self.data[key]

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        found, end, start = key
        value = self.get(found, start, end)
        packed = None if value is None else self.value_codec.pack(value)
        return self.key_codec.pack(found) + _SESSION.pack(end, start), packed

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, sessions in self.data.items():
            for (end, start), value in sessions.items():
                yield self.key_codec.pack(key) + _SESSION.pack(end, start), self.value_codec.pack(value)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key[:-16])
        end, start = _SESSION.unpack_from(key, len(key) - 16)
        if value is not None:
            self._set(found, start, end, self.value_codec.unpack(value))
            return
        self._forget(found, start, end)

    def changelog(self) -> Iterator[ChangelogEntry]:
        encode_key, encode = self.key_codec.encode, self.value_codec.encode
        for key, end, start in self.changed:
            value = self.get(key, start, end)
            encoded = encode_key(key) + _SESSION.pack(end, start)
            yield ChangelogEntry(encoded, None if value is None else encode(value), end)

    def __len__(self) -> int:
        return sum(map(len, self.data.values()))


class ProcessorSessions(ProcessorSessionStore[Any, Any]):
    """A session store as a processor sees it."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    def put(self, key: Any, start: int, end: int, value: Any) -> None:
        self._store.put(key, start, end, value)

    def find(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[int, int, Any]]:
        return iter(self._store.find(key, earliest_end, latest_start))
