"""Buffers in order of time: changes that ``suppress`` holds back, and records that wait for a versioned table."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from barnabas.streams.runtime.store import TIMESTAMP, StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["Buffered", "RecordBuffer", "SuppressBuffer"]

_encode: Final = msgspec.msgpack.Encoder().encode
_Packed = tuple[int, bytes | None, bytes | None, bytes | None, int, bool, tuple[tuple[str, bytes | None], ...], int]
_decode: Final = msgspec.msgpack.Decoder(_Packed).decode
_PackedRecord = tuple[int, bytes | None, tuple[tuple[str, bytes | None], ...]]
_decode_record: Final = msgspec.msgpack.Decoder(_PackedRecord).decode


class Buffered(NamedTuple):
    """A change that is held back. ``time`` is its place in the order; ``prior`` the value before the first change."""

    time: int
    new: Any
    old: Any
    prior: Any
    timestamp: int
    latest: bool
    headers: tuple[tuple[str, bytes | None], ...]
    topic_size: int  # length of the name of the input topic, which Kafka counts as part of the entry


class SuppressBuffer(StateStore):
    """Changes by key, and their keys in order of time and of the encoded key."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, Buffered] = {}
        self._order: list[tuple[int, bytes, Any]] = []  # a heap
        self.size = 0  # bytes, as Kafka estimates them; counted if the buffer has a limit of bytes
        self.counts_bytes = False

    def is_due(self, time: int) -> bool:
        """Tell whether the oldest change is of a time or before it."""
        return bool(self._order) and self._order[0][0] <= time

    def put(
        self,
        key: Any,
        time: int,
        new: Any,
        old: Any,
        timestamp: int,
        headers: tuple[tuple[str, bytes | None], ...],
        latest: bool,
        topic_size: int,
    ) -> None:
        """Add a change, or replace one of the same key, which keeps its place in the order."""
        before = self.data.get(key)
        prior = old
        if before is None:
            heapq.heappush(self._order, (time, self.key_codec.encode(key), key))
        else:
            time, prior = before[0], before[3]
            if self.counts_bytes:
                self.size -= self._bytes(key, before)
        change = tuple.__new__(Buffered, (time, new, old, prior, timestamp, latest, headers, topic_size))
        self.data[key] = change
        self.changed[key] = None
        if self.counts_bytes:
            self.size += self._bytes(key, change)

    def pop_first(self) -> tuple[Any, Buffered]:
        """Remove and return the oldest change."""
        key = heapq.heappop(self._order)[2]
        change = self.data.pop(key)
        self.changed[key] = None
        if self.counts_bytes:
            self.size -= self._bytes(key, change)
        return key, change

    def _bytes(self, key: Any, change: Buffered) -> int:
        pack = self.value_codec.encode
        prior = b"" if change.prior is None else pack(change.prior)
        old = b"" if change.old is None else pack(change.old)
        new = b"" if change.new is None else pack(change.new)
        values = len(prior) + (0 if old == prior else len(old)) + len(new)
        headers = sum(len(name) + (0 if value is None else len(value)) for name, value in change.headers)
        return 8 + len(self.key_codec.encode(key)) + values + 20 + change.topic_size + headers

    def _pack(self, change: Buffered) -> bytes:
        pack = self.value_codec.pack
        values = [None if value is None else pack(value) for value in change[1:4]]
        return _encode((change.time, *values, *change[4:]))

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        change = self.data.get(key)
        return self.key_codec.pack(key), None if change is None else self._pack(change)

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, change in self.data.items():
            yield self.key_codec.pack(key), self._pack(change)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key)
        before = self.data.pop(found, None)
        if before is not None and self.counts_bytes:
            self.size -= self._bytes(found, before)
        time = None
        if value is not None:
            unpack = self.value_codec.unpack
            time, new, old, prior, timestamp, latest, headers, topic_size = _decode(value)
            self.data[found] = Buffered(
                time,
                None if new is None else unpack(new),
                None if old is None else unpack(old),
                None if prior is None else unpack(prior),
                timestamp,
                latest,
                headers,
                topic_size,
            )
            if self.counts_bytes:
                self.size += self._bytes(found, self.data[found])
        if before is not None and before.time != time:
            self._order = [entry for entry in self._order if entry[2] != found]
            heapq.heapify(self._order)
        if time is not None and (before is None or before.time != time):
            heapq.heappush(self._order, (time, self.key_codec.encode(found), found))

    def __len__(self) -> int:
        return len(self.data)


class RecordBuffer(StateStore):
    """Records of a stream in order of time, then of the encoded key, then of arrival."""

    def __init__(self, spec: StoreSpec, topic: str, serial: list[int]) -> None:
        super().__init__(spec, topic)
        self.data: dict[tuple[int, Any, int], tuple[Any, tuple[tuple[str, bytes | None], ...]]] = {}
        self._serial = serial  # the cell with the number of the next record
        self._order: list[tuple[int, bytes, int, Any]] = []  # a heap

    def put(self, key: Any, value: Any, timestamp: int, headers: tuple[tuple[str, bytes | None], ...]) -> None:
        """Add a record."""
        number = self._serial[0]
        self._serial[0] += 1
        self.data[timestamp, key, number] = (value, headers)
        self.changed[timestamp, key, number] = None
        heapq.heappush(self._order, (timestamp, self.key_codec.encode(key), number, key))

    def pop_until(self, time: int) -> Iterator[tuple[Any, Any, int, tuple[tuple[str, bytes | None], ...]]]:
        """Remove the records up to a time, oldest first: key, value, timestamp and headers."""
        while self._order and self._order[0][0] <= time:
            timestamp, _, number, key = heapq.heappop(self._order)
            value, headers = self.data.pop((timestamp, key, number))
            self.changed[timestamp, key, number] = None
            yield key, value, timestamp, headers

    def _packed_key(self, timestamp: int, key: Any, number: int) -> bytes:
        return self.key_codec.pack(key) + TIMESTAMP.pack(timestamp) + TIMESTAMP.pack(number)

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        entry = self.data.get(key)
        return self._packed_key(*key), None if entry is None else self._pack(entry)

    def _pack(self, entry: tuple[Any, tuple[tuple[str, bytes | None], ...]]) -> bytes:
        value, headers = entry
        return _encode((0, None if value is None else self.value_codec.pack(value), headers))

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for key, entry in self.data.items():
            yield self._packed_key(*key), self._pack(entry)

    def restore(self, key: bytes, value: bytes | None) -> None:
        found = self.key_codec.unpack(key[:-16])
        (timestamp,), (number,) = TIMESTAMP.unpack_from(key, len(key) - 16), TIMESTAMP.unpack_from(key, len(key) - 8)
        place = (timestamp, self.key_codec.encode(found), number, found)
        if value is None:
            if self.data.pop((timestamp, found, number), None) is not None:
                self._order.remove(place)
                heapq.heapify(self._order)
            return
        _, data, headers = _decode_record(value)
        self.data[timestamp, found, number] = (None if data is None else self.value_codec.unpack(data), headers)
        heapq.heappush(self._order, place)

    def __len__(self) -> int:
        return len(self.data)
