"""The store that both sides of a left or outer stream-stream join share: rows that found no partner yet."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any

from barnabas.client.serdes.serde import Place
from barnabas.streams.runtime.store import TIMESTAMP, StateStore
from barnabas.streams.runtime.window_store import pack_list, unpack_list
from barnabas.streams.serdes import codec_of
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["OuterJoinStore"]


class OuterJoinStore(StateStore):
    """Rows by timestamp, side and key, in the order in which they are emitted: the right side before the left."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        super().__init__(spec, topic)
        self.right_codec = codec_of(spec.other_value, Place(topic))
        self.data: dict[tuple[int, bool, Any], list[Any]] = {}
        self._order: list[tuple[int, bool, bytes, Any]] = []

    def _place(self, entry: tuple[int, bool, Any]) -> tuple[int, bool, bytes, Any]:
        timestamp, is_right, key = entry
        return timestamp, not is_right, self.key_codec.encode(key), key

    def add(self, timestamp: int, is_right: bool, key: Any, value: Any) -> None:
        """Add a row."""
        entry = (timestamp, is_right, key)
        values = self.data.get(entry)
        if values is None:
            self.data[entry] = [value]
            insort(self._order, self._place(entry), key=lambda place: place[:3])
        else:
            values.append(value)
        self.changed[entry] = None

    def remove(self, timestamp: int, is_right: bool, key: Any) -> None:
        """Remove the rows of a timestamp, side and key."""
        entry = (timestamp, is_right, key)
        if self.data.pop(entry, None) is not None:
            self._forget(entry)
            self.changed[entry] = None

    def _forget(self, entry: tuple[int, bool, Any]) -> None:
        place = self._place(entry)
        del self._order[bisect_left(self._order, place[:3], key=lambda each: each[:3])]

    def in_order(self) -> Iterator[tuple[int, bool, Any, Any]]:
        """Iterate over timestamp, side, key and value of all rows; the rows that were returned may be removed."""
        at = 0
        while at < len(self._order):
            place = self._order[at]
            timestamp, is_left, _, key = place
            for value in tuple(self.data[timestamp, not is_left, key]):
                yield timestamp, not is_left, key, value
            if at < len(self._order) and self._order[at] is place:
                at += 1

    def _codec_pack(self, is_right: bool, values: list[Any]) -> bytes:
        pack = self.right_codec.pack if is_right else self.value_codec.pack
        return pack_list([pack(value) for value in values])

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        timestamp, is_right, found = key
        values = self.data.get(key)
        packed_key = TIMESTAMP.pack(timestamp) + bytes((is_right,)) + self.key_codec.pack(found)
        return packed_key, None if values is None else self._codec_pack(is_right, values)

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for entry, values in self.data.items():
            yield self.packed(entry)[0], self._codec_pack(entry[1], values)

    def restore(self, key: bytes, value: bytes | None) -> None:
        entry = (TIMESTAMP.unpack_from(key)[0], bool(key[8]), self.key_codec.unpack(key[9:]))
        if value is None:
            if self.data.pop(entry, None) is not None:
                self._forget(entry)
            return
        if entry not in self.data:
            insort(self._order, self._place(entry), key=lambda place: place[:3])
        unpack = self.right_codec.unpack if entry[1] else self.value_codec.unpack
        self.data[entry] = unpack_list(value, unpack)

    def __len__(self) -> int:
        return len(self.data)
