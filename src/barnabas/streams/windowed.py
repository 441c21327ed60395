"""A grouped stream divided into windows: count, reduce and aggregate for each key and window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError
from barnabas.streams.grouped import GroupedStream, count_function, reduce_function
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike, WindowedSerde
from barnabas.streams.table import Table
from barnabas.streams.topology.operators import SessionAggregate, WindowAggregate
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.windows import SessionWindows, SlidingWindows, TimeWindows, Windowed

__all__ = ["SessionWindowedStream", "TimeWindowedStream"]

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


def _add_counts(one: int, other: int) -> int:
    return one + other


class TimeWindowedStream(Generic[K, V]):
    """Records grouped by key and by tumbling, hopping or sliding window."""

    def __init__(
        self, grouped: GroupedStream[K, V], windows: TimeWindows | SlidingWindows, *, on_close: bool = False
    ) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = on_close

    def emit_on_window_close(self) -> TimeWindowedStream[K, V]:
        """Emit one final result for each window, when it closes, instead of every update."""
        return TimeWindowedStream(self._grouped, self._windows, on_close=True)

    def count(
        self,
        *,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], int]:
        """Count the records of each key and window.

        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KSTREAM-AGGREGATE-", lambda: 0, count_function, int, store, retention, name, on_error)

    def reduce(
        self,
        function: Callable[[V, V], V],
        *,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], V]:
        """Combine the values of each key and window.

        function: function of the aggregate and the new value; the first value is the aggregate.
        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        reducer = reduce_function(function)
        return self._aggregate(
            "KSTREAM-REDUCE-", lambda: None, reducer, self._grouped._value, store, retention, name, on_error
        )

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[A, V], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        retention: Duration | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[K, A, V], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        retention: Duration | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[Windowed[K], A]: ...
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[..., A],
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], A]:
        """Aggregate the values of each key and window.

        initializer: function that returns the first aggregate of a key and window.
        function: function of the aggregate and the new value, or of key, aggregate and value. It returns the new
            aggregate and must not change the old one.
        value: type or serde of the aggregate; needed if it holds objects other than text, numbers, lists and dicts.
        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KSTREAM-AGGREGATE-", initializer, function, value, store, retention, name, on_error)

    def _aggregate(
        self,
        prefix: str,
        initializer: Callable[[], Any],
        function: Callable[..., Any],
        value: SerdeLike[Any] | None,
        store: str | None,
        retention: Duration | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Table[Windowed[K], Any]:
        naming = self._grouped._graph.naming
        store_name = store if store is not None else naming.store(prefix)
        node_name = naming.or_else(name, prefix)
        spec = window_store(store_name, self._windows, self._grouped._key, value, is_named=store is not None)
        spec = _retained(spec, retention)
        operator = WindowAggregate(store_name, self._windows, initializer, function, self._on_close)
        key = WindowedSerde(self._grouped._key, spec.size_ms, is_session=False)
        return self._grouped._build(node_name, spec, operator, key, on_error, window_grace_ms=self._windows.grace_ms)


class SessionWindowedStream(Generic[K, V]):
    """Records grouped by key and by session window."""

    def __init__(self, grouped: GroupedStream[K, V], windows: SessionWindows, *, on_close: bool = False) -> None:
        self._grouped = grouped
        self._windows = windows
        self._on_close = on_close

    def emit_on_window_close(self) -> SessionWindowedStream[K, V]:
        """Emit one final result for each session, when it closes, instead of every update."""
        return SessionWindowedStream(self._grouped, self._windows, on_close=True)

    def count(
        self,
        *,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], int]:
        """Count the records of each key and session.

        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate(
            "KSTREAM-AGGREGATE-", lambda: 0, count_function, _add_counts, int, store, retention, name, on_error
        )

    def reduce(
        self,
        function: Callable[[V, V], V],
        *,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], V]:
        """Combine the values of each key and session.

        function: function of the aggregate and the new value; it also merges the aggregates of two sessions.
        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        reducer = reduce_function(function)

        def merge(one: V | None, other: V) -> V:
            return other if one is None else function(one, other)

        return self._aggregate(
            "KSTREAM-REDUCE-", lambda: None, reducer, merge, self._grouped._value, store, retention, name, on_error
        )

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[A, V], A],
        merge: Callable[[A, A], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        retention: Duration | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[Windowed[K], A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[K, A, V], A],
        merge: Callable[[K, A, A], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        retention: Duration | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[Windowed[K], A]: ...
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[..., A],
        merge: Callable[..., A],
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        retention: Duration | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], A]:
        """Aggregate the values of each key and session.

        initializer: function that returns the first aggregate of a session.
        function: function of the aggregate and the new value, or of key, aggregate and value. It returns the new
            aggregate and must not change the old one.
        merge: function of two aggregates, or of key and two aggregates, for sessions that become one.
        value: type or serde of the aggregate; needed if it holds objects other than text, numbers, lists and dicts.
        store: name of the store; a named store has a changelog topic.
        retention: how long windows can be read from the store; at least, and by default, until they close.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate(
            "KSTREAM-AGGREGATE-", initializer, function, merge, value, store, retention, name, on_error
        )

    def _aggregate(
        self,
        prefix: str,
        initializer: Callable[[], Any],
        function: Callable[..., Any],
        merge: Callable[..., Any],
        value: SerdeLike[Any] | None,
        store: str | None,
        retention: Duration | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Table[Windowed[K], Any]:
        naming = self._grouped._graph.naming
        windows = self._windows
        store_name = store if store is not None else naming.store(prefix)
        node_name = naming.or_else(name, prefix)
        spec = session_store(store_name, windows, self._grouped._key, value, is_named=store is not None)
        spec = _retained(spec, retention)
        operator = SessionAggregate(store_name, windows, initializer, function, merge, self._on_close)
        key = WindowedSerde(self._grouped._key, 0, is_session=True)
        grace_ms = windows.gap_ms + windows.grace_ms
        return self._grouped._build(node_name, spec, operator, key, on_error, window_grace_ms=grace_ms)


def _retained(spec: StoreSpec, retention: Duration | None) -> StoreSpec:
    if retention is None:
        return spec
    retention_ms = milliseconds(retention)
    if retention_ms < spec.retention_ms:
        raise TopologyError(
            f"the retention {retention} of {spec.name} is shorter than the {spec.retention_ms} ms until windows close"
        )
    return replace(spec, retention_ms=retention_ms)


def window_store(
    name: str,
    windows: TimeWindows | SlidingWindows,
    key: SerdeLike[Any] | None,
    value: SerdeLike[Any] | None,
    *,
    is_named: bool,
) -> StoreSpec:
    """Describe the store of an aggregation over windows."""
    if isinstance(windows, TimeWindows):
        size, retention = windows.size_ms, windows.size_ms + windows.grace_ms
    else:
        size, retention = windows.difference_ms, 2 * windows.difference_ms + windows.grace_ms
    return StoreSpec(name, "window", key, value, retention, size, is_named=is_named)


def session_store(
    name: str, windows: SessionWindows, key: SerdeLike[Any] | None, value: SerdeLike[Any] | None, *, is_named: bool
) -> StoreSpec:
    """Describe the store of an aggregation over sessions."""
    return StoreSpec(name, "session", key, value, windows.gap_ms + windows.grace_ms, is_named=is_named)
