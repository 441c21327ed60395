"""A table: the newest value of each key, as a stream of changes; and the global table, a copy of a whole topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import TopologyError
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.table_joins import TableJoins
from barnabas.streams.topology.graph import Graph, GraphNode, window_grace_ms
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import (
    GroupTable,
    Suppress,
    TableFilter,
    TableMapValues,
    TableOperator,
    ToStream,
)
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.grouped_table import GroupedTable
    from barnabas.streams.stream import Stream

__all__ = ["GlobalTable", "Table"]

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class GlobalTable(Generic[K, V]):
    """A table of which every task has a complete copy; made by :meth:`App.global_table`."""

    def __init__(self, graph: Graph, store: str) -> None:
        self._graph = graph
        self.store = store


class Table(TableJoins[K, V]):
    """A table with keys of type ``K`` and values of type ``V``.

    Functions get the value, or the key and the value if they have two parameters. Operators with ``store=`` keep their
    result in a store of that name, which has a changelog topic.
    """

    @overload
    def filter(
        self,
        predicate: Callable[[V], object],
        *,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V]: ...
    @overload
    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V]: ...
    def filter(
        self,
        predicate: Callable[..., object],
        *,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Keep the rows for which the predicate is true; other rows are deleted from the result.

        predicate: function of the value, or of key and value.
        """
        return self._filter(predicate, store, name, on_error, negate=False)

    @overload
    def filter_not(
        self,
        predicate: Callable[[V], object],
        *,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V]: ...
    @overload
    def filter_not(
        self,
        predicate: Callable[[K, V], object],
        *,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V]: ...
    def filter_not(
        self,
        predicate: Callable[..., object],
        *,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Keep the rows for which the predicate is false; other rows are deleted from the result.

        predicate: function of the value, or of key and value.
        """
        return self._filter(predicate, store, name, on_error, negate=True)

    @overload
    def map_values(
        self,
        function: Callable[[V], V2],
        *,
        value: SerdeLike[V2] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V2]: ...
    @overload
    def map_values(
        self,
        function: Callable[[K, V], V2],
        *,
        value: SerdeLike[V2] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, V2]: ...
    def map_values(
        self,
        function: Callable[..., V2],
        *,
        value: SerdeLike[V2] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V2]:
        """Replace the value of each row.

        function: function of the value, or of key and value.
        value: type or serde of the results.
        """
        node_name = self._graph.naming.or_else(name, "KTABLE-MAPVALUES-")
        spec = None if store is None else StoreSpec(store, "timestamped", self._key, value, is_named=True)
        operator = TableMapValues(self._operator, function, spec)
        return self._derived(node_name, operator, spec, value, on_error)

    def to_stream(self, *, name: str | None = None) -> Stream[K, V]:
        """Return the changes of the table as a stream; a deleted row is a record with a null value.

        name: name of the node.
        """
        from barnabas.streams.stream import Stream

        node_name = self._graph.naming.or_else(name, "KTABLE-TOSTREAM-")

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, ToStream(), *parents)

        node = self._graph.add(self._node, GraphNode(node_name, write))
        return Stream(self._graph, node, node_name, self._key, self._value, self._sources)

    def suppress(
        self,
        until: Literal["window_closes"] | Duration,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: Literal["emit_early", "fail"] | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Hold back changes of rows; only the last one is emitted.

        until: ``"window_closes"`` for the final result of each window, or how long the changes of a row are held back.
        max_records, max_bytes: limits of the buffer; without them it is not limited.
        when_full: ``"emit_early"`` emits the oldest changes, ``"fail"`` stops the application. Final results of windows
            are never emitted early.
        name: name of the node.
        """
        is_final = until == "window_closes"
        if is_final and when_full == "emit_early":
            raise TopologyError("suppress(until='window_closes') cannot emit early, because its results are final")
        if when_full is not None and max_records is None and max_bytes is None:
            raise TopologyError("suppress(when_full=) needs a limit: max_records= or max_bytes=")
        node_name = name if name is not None else self._graph.naming.processor("KTABLE-SUPPRESS-")
        store_name = f"{name}-store" if name is not None else self._graph.naming.store("KTABLE-SUPPRESS-")
        wait_ms = window_grace_ms(self._node) if is_final else milliseconds(until)
        early = when_full == "emit_early" or (when_full is None and not is_final)
        operator = Suppress(self._operator, store_name, wait_ms, is_final, max_records, max_bytes, emit_early=early)
        self._operator.enable_old_values(force=True)  # the buffer keeps the value from before the first change
        spec = StoreSpec(store_name, "suppress", self._key, self._value)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents)
            writer.add_store(spec, node_name)

        node = GraphNode(node_name, write, is_output_versioned=False, refuses_versioned=True)
        self._graph.add(self._node, node)
        return Table(self._graph, node, node_name, operator, self._key, self._value, self._sources)

    @overload
    def group_by(
        self,
        function: Callable[[V], tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> GroupedTable[K2, V2]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = ...,
        value: SerdeLike[V2] | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> GroupedTable[K2, V2]: ...
    def group_by(
        self,
        function: Callable[..., tuple[K2, V2]],
        *,
        key: SerdeLike[K2] | None = None,
        value: SerdeLike[V2] | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> GroupedTable[K2, V2]:
        """Group the rows by a new key.

        function: function of the value, or of key and value, that returns the key of the group and the value.
        key, value: types or serdes of the results.
        name: name of the node and of the repartition.
        """
        from barnabas.streams.grouped_table import GroupedTable

        node_name = self._graph.naming.or_else(name, "KTABLE-SELECT-")
        operator = GroupTable(function)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)

        def set_versioned(parent: str) -> None:
            operator.is_versioned = True

        node = GraphNode(node_name, write, set_versioned=set_versioned)
        self._graph.add(self._node, node)
        self._operator.enable_old_values(force=True)
        return GroupedTable(self._graph, node, key, value, topic=name, on_error=on_error)

    def _filter(
        self,
        predicate: Callable[..., object],
        store: str | None,
        name: str | None,
        on_error: ErrorPolicy | None,
        *,
        negate: bool,
    ) -> Table[K, V]:
        node_name = self._graph.naming.or_else(name, "KTABLE-FILTER-")
        spec = None if store is None else StoreSpec(store, "timestamped", self._key, self._value, is_named=True)
        operator = TableFilter(self._operator, predicate, spec, negate=negate)

        def set_versioned(parent: str) -> None:
            operator.is_versioned = True

        return self._derived(node_name, operator, spec, self._value, on_error, set_versioned)

    def _derived(
        self,
        name: str,
        operator: TableOperator,
        store: StoreSpec | None,
        value: SerdeLike[Any] | None,
        on_error: ErrorPolicy | None,
        set_versioned: Callable[[str], None] | None = None,
    ) -> Table[K, Any]:
        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(name, operator, *parents, on_error=on_error)
            if store is not None:
                writer.add_store(store, name)

        versioned = None if store is None else False
        node = GraphNode(name, write, is_output_versioned=versioned, set_versioned=set_versioned)
        self._graph.add(self._node, node)
        return Table(self._graph, node, name, operator, self._key, value, self._sources)
