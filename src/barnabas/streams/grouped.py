"""A stream grouped by key: count, reduce, aggregate, windows and cogroup."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.repartition import repartition_node
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import Aggregate
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import AggregateTable, StreamAggregate
from barnabas.streams.topology.writer import TopologyWriter
from barnabas.streams.windows import SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from barnabas.streams.cogrouped import CogroupedStream
    from barnabas.streams.table import Table
    from barnabas.streams.windowed import SessionWindowedStream, TimeWindowedStream

__all__ = ["GroupedStream", "count_function", "reduce_function"]

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


def count_function(aggregate: int, value: object) -> int:
    """Count one more."""
    return aggregate + 1


def reduce_function(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the aggregator of a reduce over windows, whose first value is the aggregate."""
    return lambda aggregate, value: value if aggregate is None else function(aggregate, value)


class GroupedStream(Generic[K, V]):
    """Records grouped by key. It is made by ``group_by`` and ``group_by_key`` of a stream."""

    def __init__(
        self,
        graph: Graph,
        node: GraphNode,
        name: str,
        key: SerdeLike[Any] | None,
        value: SerdeLike[Any] | None,
        sources: frozenset[str],
        *,
        repartition_required: bool,
        topic: str | None,
        on_error: ErrorPolicy | None = None,
    ) -> None:
        self._graph = graph
        self._node = node
        self._name = name
        self._key = key
        self._value = value
        self._sources = sources
        self._repartition_required = repartition_required
        self._topic = topic  # the user's name of the repartition, which several aggregations then share
        self._on_error = on_error  # of the repartition
        self._repartitioned: GraphNode | None = None

    def count(
        self, *, store: str | None = None, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> Table[K, int]:
        """Count the records of each key; records with a null key or value are not counted.

        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KSTREAM-AGGREGATE-", lambda: 0, count_function, int, store, name, on_error)

    def reduce(
        self,
        function: Callable[[V, V], V],
        *,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Combine the values of each key.

        function: function of the aggregate and the new value; the first value of a key is its aggregate.
        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KSTREAM-REDUCE-", None, function, self._value, store, name, on_error)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[A, V], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[[K, A, V], A],
        *,
        value: SerdeLike[A] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, A]: ...
    def aggregate(
        self,
        initializer: Callable[[], A],
        function: Callable[..., A],
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, A]:
        """Aggregate the values of each key.

        initializer: function that returns the first aggregate of a key.
        function: function of the aggregate and the new value, or of key, aggregate and value. It returns the new
            aggregate and must not change the old one.
        value: type or serde of the aggregate; needed if it holds objects other than text, numbers, lists and dicts.
        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KSTREAM-AGGREGATE-", initializer, function, value, store, name, on_error)

    @overload
    def window(self, windows: TimeWindows | SlidingWindows) -> TimeWindowedStream[K, V]: ...
    @overload
    def window(self, windows: SessionWindows) -> SessionWindowedStream[K, V]: ...
    def window(
        self, windows: TimeWindows | SlidingWindows | SessionWindows
    ) -> TimeWindowedStream[K, V] | SessionWindowedStream[K, V]:
        """Divide the records of each key into windows.

        windows: ``tumbling(...)``, ``hopping(...)``, ``sliding(...)`` or ``session(...)``.
        """
        from barnabas.streams.windowed import SessionWindowedStream, TimeWindowedStream

        if isinstance(windows, SessionWindows):
            return SessionWindowedStream(self, windows)
        return TimeWindowedStream(self, windows)

    def cogroup(self, function: Callable[[A, V], A]) -> CogroupedStream[K, A]:
        """Aggregate this grouped stream together with others.

        function: function of the aggregate and a value of this stream.
        """
        from barnabas.streams.cogrouped import CogroupedStream

        empty: CogroupedStream[K, A] = CogroupedStream(self._graph)
        return empty.cogroup(self, function)

    def _aggregate(
        self,
        prefix: str,
        initializer: Callable[[], Any] | None,
        function: Callable[..., Any],
        value: SerdeLike[Any] | None,
        store: str | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Table[K, Any]:
        store_name = store if store is not None else self._graph.naming.store(prefix)
        node_name = self._graph.naming.or_else(name, prefix)
        spec = StoreSpec(store_name, "timestamped", self._key, value, is_named=store is not None)
        return self._build(node_name, spec, Aggregate(store_name, initializer, function), self._key, on_error)

    def _build(
        self,
        name: str,
        store: StoreSpec,
        operator: StreamAggregate,
        key: SerdeLike[Any] | None,
        on_error: ErrorPolicy | None,
        *,
        window_grace_ms: int | None = None,
    ) -> Table[Any, Any]:
        """Add an aggregation, behind a repartition if the key was changed."""
        from barnabas.streams.table import Table

        parent, sources = self._node, self._sources
        if self._repartition_required:
            prefix = self._topic if self._topic is not None else store.name
            made, source = repartition_node(self._graph, prefix, self._key, self._value, on_error=self._on_error)
            if self._repartitioned is None or self._topic is None:
                self._repartitioned = made
            self._graph.add(parent, self._repartitioned)
            parent, sources = self._repartitioned, frozenset({source})

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(name, operator, *parents, on_error=on_error)
            writer.add_store(store, name)

        node = GraphNode(name, write, operator=operator, window_grace_ms=window_grace_ms, is_output_versioned=False)
        self._graph.add(parent, node)
        return Table(self._graph, node, name, AggregateTable(operator), key, store.value, sources)
