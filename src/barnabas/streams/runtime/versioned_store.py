"""Versioned stores: each key has its newest value and older versions for some time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from barnabas.streams.processor import VersionedStore as ProcessorVersionedStore
from barnabas.streams.runtime.store import ChangelogEntry, StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["ProcessorVersions", "VersionedStore"]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[list[int], list[bytes | None]]).decode


class VersionedStore(StateStore):
    """Versions of each key in order of time: a list of timestamps and a list of values; None is a deletion.

    A version is valid until the next one begins. Versions that ended before the history are dropped.
    """

    def __init__(self, spec: StoreSpec, topic: str, observed: list[int]) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, tuple[list[int], list[Any]]] = {}
        self.observed = observed  # the cell with the store's time
        self._history_ms = spec.retention_ms
        self._logged: list[tuple[Any, Any, int]] = []  # puts since the changelog was taken, in order

    def put(self, key: Any, value: Any, timestamp: int) -> bool | None:
        """Add a version. Returns whether it is the newest one, or None if it is older than the history."""
        if timestamp < self.observed[0] - self._history_ms:
            return None
        if timestamp > self.observed[0]:
            self.observed[0] = timestamp
        times, values = self.data.setdefault(key, ([], []))
        place = bisect_left(times, timestamp)
        is_replaced = place < len(times) and times[place] == timestamp
        if is_replaced:
            values[place] = value
        else:
            times.insert(place, timestamp)
            values.insert(place, value)
        is_latest = place == len(times) - 1
        if is_replaced and is_latest and value is None and (place == 0 or values[place - 1] is None):
            # A deletion at the very time of the version that it replaces leaves no trace, as in Kafka.
            del times[place], values[place]
        self._prune(key, times, values)
        self.changed[key] = None
        if self.spec.is_named:
            self._logged.append((key, value, timestamp))
        return is_latest

    def _prune(self, key: Any, times: list[int], values: list[Any]) -> None:
        limit = self.observed[0] - self._history_ms
        ended = bisect_right(times, limit) - 1  # versions before this one ended before the history
        if ended > 0:
            del times[:ended], values[:ended]
        if not values or (values == [None] and times[0] < limit):
            del self.data[key]

    def get(self, key: Any, at: int | None = None) -> tuple[Any, int] | None:
        """Return value and timestamp of the newest version, or of the version of a time; None if there is none."""
        found = self.data.get(key)
        if found is None:
            return None
        times, values = found
        place = len(times) - 1
        if at is not None and at < times[-1]:
            if at < self.observed[0] - self._history_ms:
                return None
            place = bisect_right(times, at) - 1
            if place < 0:
                return None
        return None if values[place] is None else (values[place], times[place])

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        found = self.data.get(key)
        return self.key_codec.pack(key), None if found is None else self._pack(found)

    def _pack(self, versions: tuple[list[int], list[Any]]) -> bytes:
        times, values = versions
        return _encode((times, [None if value is None else self.value_codec.pack(value) for value in values]))

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, versions in self.data.items():
            yield self.key_codec.pack(key), self._pack(versions)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key)
        if value is None:
            self.data.pop(found, None)
            return
        times, values = _decode(value)
        self.data[found] = times, [None if each is None else self.value_codec.unpack(each) for each in values]

    def changelog(self) -> Iterator[ChangelogEntry]:
        encode_key, encode = self.key_codec.encode, self.value_codec.encode
        for key, value, timestamp in self._logged:
            yield ChangelogEntry(encode_key(key), None if value is None else encode(value), timestamp)
        self._logged.clear()

    def __len__(self) -> int:
        return len(self.data)


class ProcessorVersions(ProcessorVersionedStore[Any, Any]):
    """A versioned store as a processor sees it."""

    def __init__(self, store: VersionedStore) -> None:
        self._store = store

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        self._store.put(key, value, timestamp)

    def get(self, key: Any, at: int | None = None) -> tuple[Any, int] | None:
        return self._store.get(key, at)

    def history(self, key: Any, first: int, last: int) -> Iterator[tuple[Any, int, int | None]]:
        times, values = self._store.data.get(key, ([], []))
        for place in reversed(range(len(times))):
            until = times[place + 1] if place + 1 < len(times) else None
            if times[place] <= last and (until is None or until > first) and values[place] is not None:
                yield values[place], times[place], until
