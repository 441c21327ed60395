"""Several grouped streams with one aggregate: cogroup, with and without windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from barnabas.streams.errors import TopologyError
from barnabas.streams.grouped import GroupedStream
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.repartition import repartition_node
from barnabas.streams.serdes import SerdeLike, WindowedSerde
from barnabas.streams.table import Table
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import Aggregate, SessionAggregate, WindowAggregate
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import CogroupTable, StreamAggregate
from barnabas.streams.topology.writer import TopologyWriter
from barnabas.streams.windowed import session_store, window_store
from barnabas.streams.windows import SessionWindows, SlidingWindows, TimeWindows, Windowed

__all__ = ["CogroupedStream", "WindowedCogroupedStream"]

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

Function = Callable[..., Any]


class _Cogroup(Generic[K, A]):
    """The grouped streams of a cogroup, each with its function."""

    def __init__(self, graph: Graph, groups: dict[GroupedStream[K, Any], Function]) -> None:
        self._graph = graph
        self._groups = groups
        self._parents: dict[GroupedStream[K, Any], GraphNode] = {}

    @property
    def _key(self) -> SerdeLike[Any] | None:
        return next((group._key for group in self._groups if group._key is not None), None)

    def _store_name(self, store: str | None) -> str:
        return store if store is not None else self._graph.naming.store("COGROUPKSTREAM-AGGREGATE-")

    def _build(
        self,
        store: StoreSpec,
        name: str | None,
        key: SerdeLike[Any] | None,
        make: Callable[[Function], StreamAggregate],
        on_error: ErrorPolicy | None,
        window_grace_ms: int | None = None,
    ) -> Table[Any, Any]:
        sources = self._repartition(store.name)
        operators: list[StreamAggregate] = []
        nodes = []
        for number, (group, function) in enumerate(self._groups.items()):
            operator = make(function)
            node_name = self._graph.naming.or_else(name, "COGROUPKSTREAM-AGGREGATE-", f"-cogroup-agg-{number}")
            node = _aggregate_node(node_name, operator, store, on_error, window_grace_ms, is_first=number == 0)
            nodes.append(self._graph.add(self._parents[group], node))
            operators.append(operator)
        merge_name = self._graph.naming.or_else(name, "COGROUPKSTREAM-MERGE-", "-cogroup-merge")
        table = CogroupTable(operators)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(merge_name, table, *parents)

        merge = self._graph.add(nodes, GraphNode(merge_name, write))
        return Table(self._graph, merge, merge_name, table, key, store.value, sources)

    def _repartition(self, store: str) -> frozenset[str]:
        """Put repartitions before the groups that need one; returns the names of all sources."""
        sources: frozenset[str] = frozenset()
        for group in self._groups:
            if not group._repartition_required:
                self._parents[group] = group._node
                sources |= group._sources
                continue
            prefix = group._topic if group._topic is not None else store
            node, source = repartition_node(self._graph, prefix, group._key, group._value, on_error=group._on_error)
            if group not in self._parents:
                self._parents[group] = self._graph.add(group._node, node)
            sources |= {source}
        return self._graph.copartition(sources)


def _aggregate_node(
    name: str,
    operator: StreamAggregate,
    store: StoreSpec,
    on_error: ErrorPolicy | None,
    window_grace_ms: int | None,
    *,
    is_first: bool,
) -> GraphNode:
    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_processor(name, operator, *parents, on_error=on_error)
        if is_first:
            writer.add_store(store, name)
        else:
            writer.connect(name, store.name)

    return GraphNode(name, write, operator=operator, window_grace_ms=window_grace_ms, is_output_versioned=False)


class CogroupedStream(_Cogroup[K, A]):
    """Grouped streams that are aggregated together."""

    def __init__(self, graph: Graph, groups: dict[GroupedStream[K, Any], Function] | None = None) -> None:
        super().__init__(graph, groups or {})

    def cogroup(self, grouped: GroupedStream[K, V], function: Callable[[A, V], A]) -> CogroupedStream[K, A]:
        """Add a grouped stream.

        grouped: a grouped stream with the same type of keys.
        function: function of the aggregate and a value of that stream.
        """
        self._groups[grouped] = function
        return self

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, A]:
        """Aggregate the values of all streams for each key.

        initializer: function that returns the first aggregate of a key.
        value: type or serde of the aggregate.
        store: name of the store; a named store has a changelog topic.
        name: prefix of the names of the nodes.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        spec = StoreSpec(self._store_name(store), "timestamped", self._key, value, is_named=store is not None)
        return self._build(
            spec, name, self._key, lambda function: Aggregate(spec.name, initializer, function), on_error
        )

    @overload
    def window(self, windows: TimeWindows | SlidingWindows) -> WindowedCogroupedStream[K, A]: ...
    @overload
    def window(self, windows: SessionWindows) -> WindowedCogroupedStream[K, A]: ...
    def window(self, windows: TimeWindows | SlidingWindows | SessionWindows) -> WindowedCogroupedStream[K, A]:
        """Divide the records of each key into windows.

        windows: ``tumbling(...)``, ``hopping(...)``, ``sliding(...)`` or ``session(...)``.
        """
        return WindowedCogroupedStream(self._graph, self._groups, windows)


class WindowedCogroupedStream(_Cogroup[K, A]):
    """Grouped streams that are aggregated together for each key and window."""

    def __init__(
        self,
        graph: Graph,
        groups: dict[GroupedStream[K, Any], Function],
        windows: TimeWindows | SlidingWindows | SessionWindows,
    ) -> None:
        super().__init__(graph, groups)
        self._windows = windows

    def aggregate(
        self,
        initializer: Callable[[], A],
        merge: Callable[[A, A], A] | None = None,
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[Windowed[K], A]:
        """Aggregate the values of all streams for each key and window.

        initializer: function that returns the first aggregate of a key and window.
        merge: function of two aggregates, for sessions that become one; needed for session windows only.
        value: type or serde of the aggregate.
        store: name of the store; a named store has a changelog topic.
        name: prefix of the names of the nodes.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        windows = self._windows
        store_name = self._store_name(store)
        if isinstance(windows, SessionWindows):
            if merge is None:
                raise TopologyError("a cogroup over session windows needs a function merge= for two aggregates")
            merger = merge
            spec = session_store(store_name, windows, self._key, value, is_named=store is not None)
            return self._build(
                spec,
                name,
                WindowedSerde(self._key, 0, is_session=True),
                lambda function: SessionAggregate(store_name, windows, initializer, function, merger),
                on_error,
                windows.gap_ms + windows.grace_ms,
            )
        spec = window_store(store_name, windows, self._key, value, is_named=store is not None)
        return self._build(
            spec,
            name,
            WindowedSerde(self._key, spec.size_ms, is_session=False),
            lambda function: WindowAggregate(store_name, windows, initializer, function),
            on_error,
            windows.grace_ms,
        )
