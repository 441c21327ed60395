"""The Processor API: processors with typed stores, punctuators and access to the record's metadata.

A processor declares its stores as annotations: ``seen: Store[str, list[int]]``. The name of the attribute is the
name of the store; ``store(...)`` as the value sets another name, a time to live or a retention.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.stores import StoreKind, StoreSpec

__all__ = [
    "FixedKeyProcessor",
    "Processor",
    "Record",
    "SessionStore",
    "Store",
    "VersionedStore",
    "WindowStore",
    "declared_stores",
    "store",
]

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple, Generic[K, V]):
    """A record as a processor gets and forwards it."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: K2) -> Record[K2, V]:
        """Return the record with another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: V2) -> Record[K, V2]:
        """Return the record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """Return the record with another timestamp, in milliseconds."""
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """Return the record with other headers."""
        return Record(self.key, self.value, self.timestamp, headers)


class Store(Generic[K, V]):
    """A key-value store of a processor. It works like a dictionary; its keys come in the order of their bytes."""

    def get(self, key: K, default: Any = None) -> V | Any:
        """Return the value of a key, or the default."""
        raise NotImplementedError

    def __getitem__(self, key: K) -> V:
        raise NotImplementedError

    def __setitem__(self, key: K, value: V) -> None:
        raise NotImplementedError

    def __delitem__(self, key: K) -> None:
        raise NotImplementedError

    def __contains__(self, key: object) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[K]:
        raise NotImplementedError

    def pop(self, key: K, default: Any = None) -> V | Any:
        """Delete a key and return its value, or the default."""
        raise NotImplementedError

    def items(self) -> Iterator[tuple[K, V]]:
        """Iterate over keys and values in the order of the keys' bytes."""
        raise NotImplementedError

    def range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, V]]:
        """Iterate over the keys from ``first`` to ``last``, both included, in the order of their bytes."""
        raise NotImplementedError


class WindowStore(Generic[K, V]):
    """A store of values by key and window start. Entries expire behind stream time."""

    def put(self, key: K, value: V | None, start: int) -> None:
        """Set the value of a key and window; None deletes it."""
        raise NotImplementedError

    def get(self, key: K, start: int) -> V | None:
        """Return the value of a key and window, or None."""
        raise NotImplementedError

    def fetch(self, key: K, first: int, last: int) -> Iterator[tuple[int, V]]:
        """Iterate over window starts and values of a key, from ``first`` to ``last``, both included."""
        raise NotImplementedError


class SessionStore(Generic[K, V]):
    """A store of values by key and session. Entries expire behind stream time."""

    def put(self, key: K, start: int, end: int, value: V | None) -> None:
        """Set the value of a session; None deletes it."""
        raise NotImplementedError

    def find(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[int, int, V]]:
        """Iterate over start, end and value of the sessions of a key that overlap a range."""
        raise NotImplementedError


class VersionedStore(Generic[K, V]):
    """A store that keeps old versions of values for some time."""

    def put(self, key: K, value: V | None, timestamp: int) -> None:
        """Add a version; None deletes the key from that time on."""
        raise NotImplementedError

    def get(self, key: K, at: int | None = None) -> tuple[V, int] | None:
        """Return the newest version, or that of a time, with its timestamp; None if there is none."""
        raise NotImplementedError

    def history(self, key: K, first: int, last: int) -> Iterator[tuple[V, int, int | None]]:
        """Iterate over versions valid between two times, newest first: value, valid from, valid to."""
        raise NotImplementedError


@dataclass(frozen=True)
class StoreOptions:
    """Options of a declared store; see :func:`store`."""

    name: str | None = None
    ttl_ms: int | None = None
    retention_ms: int | None = None
    size_ms: int = 0
    key: SerdeLike[Any] | None = None
    value: SerdeLike[Any] | None = None


def store(
    name: str | None = None,
    *,
    ttl: Duration | None = None,
    retention: Duration | None = None,
    size: Duration = "0ms",
    key: SerdeLike[Any] | None = None,
    value: SerdeLike[Any] | None = None,
) -> Any:
    """Set options of a store that a processor declares: ``seen: Store[str, int] = store(ttl="1h")``.

    name: name of the store; by default that of the attribute.
    ttl: time to live of an entry, behind stream time.
    retention: how long a window, session or version is kept, behind stream time; needed for these kinds of store.
    size: size of the windows of a window store.
    key, value: serdes; by default the types of the annotation.
    """
    return StoreOptions(
        name,
        None if ttl is None else milliseconds(ttl),
        None if retention is None else milliseconds(retention),
        milliseconds(size),
        key,
        value,
    )


class Context:
    """What a processor knows of its task; see the attributes of :class:`Processor`. The runtime implements it."""

    application_id: str
    task: str
    time: int
    stream_time: int
    random: Random
    topic: str | None
    partition: int
    offset: int

    def forward(self, record: Record[Any, Any], to: str | None) -> None:
        """Forward a record to all children, or to one."""
        raise NotImplementedError

    def schedule(self, interval_ms: int, callback: Callable[[int], object], by: str) -> Punctuator:
        """Call a function at an interval."""
        raise NotImplementedError


class Punctuator:
    """A function that is called at an interval; :meth:`cancel` ends it."""

    def cancel(self) -> None:
        """Stop calling the function."""
        raise NotImplementedError


class _ProcessorCore:
    """Attributes and methods that both kinds of processors have.

    ``context`` is set before :meth:`init` is called.
    """

    context: Context

    def init(self) -> None:
        """Prepare the processor; called once for each task, with the stores in place."""

    def close(self) -> None:
        """Release what :meth:`init` acquired."""

    def schedule(
        self,
        interval: Duration,
        callback: Callable[[int], object],
        *,
        by: Literal["stream_time", "wall_clock"] = "stream_time",
    ) -> Punctuator:
        """Call a function at an interval.

        interval: time between two calls.
        callback: function of the time in milliseconds.
        by: ``"stream_time"``, the largest timestamp of the records so far, or ``"wall_clock"``.
        """
        return self.context.schedule(milliseconds(interval), callback, by)


class Processor(_ProcessorCore, Generic[K, V, K2, V2]):
    """Processes records with keys ``K`` and values ``V`` and forwards records with keys ``K2`` and values ``V2``.

    Subclasses define :meth:`process`. ``self.context`` has the topic, partition and offset of the input record, the
    ``stream_time``, the ``time`` of the batch and a seeded ``random``; use these instead of a clock and of ``random``,
    so that a batch that is repeated has the same results.
    """

    def process(self, record: Record[K, V]) -> None:
        """Process one record."""
        raise NotImplementedError

    def forward(self, record: Record[K2, V2], to: str | None = None) -> None:
        """Forward a record to all children, or to the child with the name ``to``."""
        self.context.forward(record, to)


class FixedKeyProcessor(_ProcessorCore, Generic[K, V, V2]):
    """Processes records and forwards records with the same key; see :class:`Processor`."""

    def process(self, record: Record[K, V]) -> None:
        """Process one record."""
        raise NotImplementedError

    def forward(self, record: Record[K, V2], to: str | None = None) -> None:
        """Forward a record, whose key must be that of the input, to all children or to the child ``to``."""
        self.context.forward(record, to)


_KINDS: dict[Any, StoreKind] = {
    Store: "key_value",
    WindowStore: "window",
    SessionStore: "session",
    VersionedStore: "versioned",
}


def declared_stores(factory: Callable[[], Any]) -> list[StoreSpec]:
    """Return the stores that a processor class declares; a factory function has them on what it returns."""
    kind = factory if isinstance(factory, type) else type(factory())
    return [spec for _, spec in store_attributes(kind)]


def store_attributes(kind: type) -> list[tuple[str, StoreSpec]]:
    """Return the attributes of a processor class that are stores."""
    found = []
    for attribute, annotation in _annotations(kind).items():
        origin = typing.get_origin(annotation) or annotation
        if origin not in _KINDS:
            continue
        options = getattr(kind, attribute, None)
        if not isinstance(options, StoreOptions):
            options = StoreOptions()
        arguments = typing.get_args(annotation)
        if arguments:
            options = replace(options, key=options.key or arguments[0], value=options.value or arguments[1])
        found.append((attribute, _spec(kind, attribute, _KINDS[origin], options)))
    return found


def _annotations(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError as error:
        raise TopologyError(
            f"the annotations of {kind.__qualname__} cannot be resolved: {error}; define its types at module level"
        ) from error


def _spec(kind: type, attribute: str, store_kind: StoreKind, options: StoreOptions) -> StoreSpec:
    if store_kind != "key_value" and options.retention_ms is None:
        raise TopologyError(
            f"{kind.__qualname__}.{attribute} needs a retention; declare it as {attribute}: ... = store(retention='1h')"
        )
    return StoreSpec(
        options.name if options.name is not None else attribute,
        store_kind,
        _serde(options.key),
        _serde(options.value),
        options.retention_ms or 0,
        options.size_ms,
        options.ttl_ms,
        is_named=True,
    )


def _serde(kind: Any) -> Any:
    return None if kind is Any or isinstance(kind, TypeVar) else kind
