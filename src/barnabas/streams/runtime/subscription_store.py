"""The store of a foreign-key join: which left rows need a row of the right side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from barnabas.streams.runtime.store import StateStore
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["Subscription", "SubscriptionStore"]

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_key: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_decode_value: Final = msgspec.msgpack.Decoder(tuple[bytes | None, int]).decode


class Subscription(NamedTuple):
    """A left row that needs a right row: the hash of its value and the partition of its task."""

    digest: bytes | None
    partition: int


class SubscriptionStore(StateStore):
    """Subscriptions by foreign key and primary key."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        super().__init__(spec, topic)
        self.data: dict[Any, dict[Any, Subscription]] = {}

    def put(self, foreign_key: Any, primary_key: Any, subscription: Subscription | None) -> None:
        """Set a subscription; None deletes it."""
        if subscription is not None:
            self.data.setdefault(foreign_key, {})[primary_key] = subscription
        else:
            self._delete(foreign_key, primary_key)
        self.changed[foreign_key, primary_key] = None

    def _delete(self, foreign_key: Any, primary_key: Any) -> None:
        rows = self.data.get(foreign_key)
        if rows is not None and rows.pop(primary_key, None) is not None and not rows:
            del self.data[foreign_key]

    def of(self, foreign_key: Any) -> list[tuple[Any, Subscription]]:
        """Return the subscriptions of a foreign key, in order of the encoded primary keys."""
        rows = self.data.get(foreign_key)
        if not rows:
            return []
        if len(rows) == 1:
            return list(rows.items())
        encode = self.value_codec.encode
        return sorted(rows.items(), key=lambda row: encode(row[0]))

    def _packed_key(self, foreign_key: Any, primary_key: Any) -> bytes:
        # The serde of primary keys is the store's value serde.
        return _encode((self.key_codec.pack(foreign_key), self.value_codec.pack(primary_key)))

    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        foreign_key, primary_key = key
        subscription = self.data.get(foreign_key, {}).get(primary_key)
        return self._packed_key(foreign_key, primary_key), None if subscription is None else _encode(subscription)

    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        for foreign_key, rows in self.data.items():
            for primary_key, subscription in rows.items():
                yield self._packed_key(foreign_key, primary_key), _encode(subscription)

    def restore(self, key: bytes, value: bytes | None) -> None:
        foreign, primary = _decode_key(key)
        foreign_key, primary_key = self.key_codec.unpack(foreign), self.value_codec.unpack(primary)
        if value is None:
            self._delete(foreign_key, primary_key)
        else:
            self.data.setdefault(foreign_key, {})[primary_key] = Subscription(*_decode_value(value))

    def __len__(self) -> int:
        return sum(map(len, self.data.values()))
