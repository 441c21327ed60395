"""What all state stores of the runtime have in common: a record of what changed, and bytes for state and changelog."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.client.serdes.serde import Place
from barnabas.streams.serdes import Codec, codec_of
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["TIMESTAMP", "ChangelogEntry", "StateStore"]

TIMESTAMP: Final = struct.Struct(">q")


class ChangelogEntry(NamedTuple):
    """One change for the changelog topic of a store, in Kafka's layout."""

    key: bytes
    value: bytes | None
    timestamp: int


class StateStore(ABC):
    """A store of a task. ``changed`` has the keys that were changed since the changes were taken."""

    def __init__(self, spec: StoreSpec, topic: str) -> None:
        self.spec = spec
        self.name = spec.name
        self.key_codec: Codec = codec_of(spec.key, Place(topic, is_key=True))
        self.value_codec: Codec = codec_of(spec.value, Place(topic))
        self.changed: dict[Any, None] = {}  # a dict, because the order of a set differs between processes

    def take_changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Iterate over packed keys and values that changed, and forget that they did."""
        changed = self.changed
        for key in changed:
            yield self.packed(key)
        changed.clear()

    @abstractmethod
    def packed(self, key: Any) -> tuple[bytes, bytes | None]:
        """Return the packed key and value of an entry; the value is None if it was deleted."""

    @abstractmethod
    def snapshot(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the packed keys and values of all entries."""

    @abstractmethod
    def restore(self, key: bytes, value: bytes | None) -> None:
        """Set or delete an entry from its packed key and value."""

    def changelog(self) -> Iterator[ChangelogEntry]:
        """Iterate over what changed as entries of the changelog; call it before :meth:`take_changes`."""
        return iter(())

    @abstractmethod
    def __len__(self) -> int: ...
