"""Key-value stores: with timestamps for tables, without for processors, and with a time to live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.streams.processor import Store
from barnabas.streams.runtime.store import TIMESTAMP, ChangelogEntry, StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["KeyValueStore", "TimestampedStore", "TtlStore"]

_MISSING = object()


class TimestampedStore(StateStore):
    """The store of a table or an aggregation: key -> (value, timestamp). Nodes use ``data`` and ``changed`` as is."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, tuple[Any, int]] = {}

    def put(self, key: Any, value: Any, timestamp: int) -> None:
        """Set the value of a key; None deletes it."""
        if value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = (value, timestamp)
        self.changed[key] = None

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        entry = self.data.get(key)
        packed = None if entry is None else TIMESTAMP.pack(entry[1]) + self.value_codec.pack(entry[0])
        return self.key_codec.pack(key), packed

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        pack_key, pack = self.key_codec.pack, self.value_codec.pack
        for key, (value, timestamp) in self.data.items():
            yield pack_key(key), TIMESTAMP.pack(timestamp) + pack(value)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key)
        if value is None:
            self.data.pop(found, None)
        else:
            self.data[found] = self.value_codec.unpack(value[8:]), TIMESTAMP.unpack_from(value)[0]

    def changelog(self) -> Iterator[ChangelogEntry]:
        encode_key, encode = self.key_codec.encode, self.value_codec.encode
        for key in self.changed:
            entry = self.data.get(key)
            if entry is None:
                yield ChangelogEntry(encode_key(key), None, -1)
            else:
                yield ChangelogEntry(encode_key(key), encode(entry[0]), entry[1])

    def __len__(self) -> int:
        return len(self.data)


class KeyValueStore(StateStore, Store[Any, Any]):
    """The store of a processor: key -> value. Iteration is in the order of the encoded keys, as in Kafka."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, Any] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        return self.data.get(key, default)

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if value is None:
            self.data.pop(key, None)
        else:
            self.data[key] = value
        self.changed[key] = None

    def __delitem__(self, key: Any) -> None:
        del self.data[key]
        self.changed[key] = None

    def pop(self, key: Any, default: Any = None) -> Any:
        found = self.data.pop(key, _MISSING)
        if found is _MISSING:
            return default
        self.changed[key] = None
        return found

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[Any, Any]]:
        return self.range()

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        encode = self.key_codec.encode
        low = b"" if first is None else encode(first)
        high = None if last is None else encode(last)
        encoded = sorted((encode(key), key) for key in list(self.data))
        for data, key in encoded:
            if data >= low and (high is None or data <= high) and key in self.data:
                yield key, self.data[key]

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        value = self.data.get(key)
        return self.key_codec.pack(key), None if value is None else self.value_codec.pack(value)

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self.data.items():
            yield self.key_codec.pack(key), self.value_codec.pack(value)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key)
        if value is None:
            self.data.pop(found, None)
        else:
            self.data[found] = self.value_codec.unpack(value)

    def changelog(self) -> Iterator[ChangelogEntry]:
        encode_key, encode = self.key_codec.encode, self.value_codec.encode
        for key in self.changed:
            value = self.data.get(key)
            yield ChangelogEntry(encode_key(key), None if value is None else encode(value), -1)


class TtlStore(KeyValueStore):
    """A key-value store whose entries expire: an entry is gone when stream time is ``ttl_ms`` past its last change.

    ``clock`` is the list of one number in which the task keeps its stream time.
    """

    def __init__(self, spec: StoreSpec, topic: str, clock: list[int]) -> None:
        super().__init__(spec, topic)
        assert spec.ttl_ms is not None
        self._ttl_ms = spec.ttl_ms
        self._clock = clock
        self._times: dict[Any, int] = {}  # key -> stream time of its last change; the oldest come first
        self._is_sorted = True

    def _expire(self) -> None:
        limit = self._clock[0] - self._ttl_ms
        if not self._is_sorted:
            self._times = dict(sorted(self._times.items(), key=lambda entry: entry[1]))
            self._is_sorted = True
        expired = []
        for key, time in self._times.items():
            if time > limit:
                break
            expired.append(key)
        for key in sorted(expired, key=self.key_codec.pack):
            del self._times[key], self.data[key]
            self.changed[key] = None

    def get(self, key: Any, default: Any = None) -> Any:
        self._expire()
        return super().get(key, default)

    def __getitem__(self, key: Any) -> Any:
        self._expire()
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._expire()
        super().__setitem__(key, value)
        self._times.pop(key, None)
        if value is not None:
            self._times[key] = self._clock[0]

    def __delitem__(self, key: Any) -> None:
        self._expire()
        super().__delitem__(key)
        del self._times[key]

    def pop(self, key: Any, default: Any = None) -> Any:
        self._expire()
        self._times.pop(key, None)
        return super().pop(key, default)

    def __contains__(self, key: object) -> bool:
        self._expire()
        return super().__contains__(key)

    def __len__(self) -> int:
        self._expire()
        return super().__len__()

    def range(self, first: Any = None, last: Any = None) -> Iterator[tuple[Any, Any]]:
        self._expire()
        return super().range(first, last)

    def take_changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        self._expire()
        return super().take_changes()

    def changelog(self) -> Iterator[ChangelogEntry]:
        self._expire()
        return super().changelog()

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        packed_key, value = super().packed(key)
        return packed_key, None if value is None else TIMESTAMP.pack(self._times[key]) + value

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key in list(self.data):
            packed_key, value = self.packed(key)
            assert value is not None
            yield packed_key, value

    def restore(self, key: bytes, value: bytes | None) -> None:
        super().restore(key, None if value is None else value[8:])
        found = self.key_codec.unpack(key)
        self._times.pop(found, None)
        if value is not None:
            self._times[found] = TIMESTAMP.unpack_from(value)[0]
            self._is_sorted = False
