"""Joins of a table: with another table by the same key, or by a foreign key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from barnabas.streams.errors import TopologyError
from barnabas.streams.foreign_key import join_on_foreign_key
from barnabas.streams.functions import accepts
from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import JoinKind, TableJoinMerge, TableJoinSide, TableOperator
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.table import Table

__all__ = ["TableJoins"]

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
V2 = TypeVar("V2")
R = TypeVar("R")


class TableJoins(Generic[K, V]):
    """The joins of :class:`Table`, and its place in the graph. Tables are made by :class:`App` and by operators."""

    def __init__(
        self,
        graph: Graph,
        node: GraphNode,
        name: str,
        operator: TableOperator,
        key: SerdeLike[Any] | None,
        value: SerdeLike[Any] | None,
        sources: frozenset[str],
    ) -> None:
        self._graph = graph
        self._node = node
        self._name = name
        self._operator = operator
        self._key = key
        self._value = value
        self._sources = sources

    @overload
    def join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2], R],
        *,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, R]: ...
    @overload
    def join(
        self,
        other: Table[KO, V2],
        joiner: Callable[[V, V2], R],
        *,
        by: Callable[[V], KO | None],
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, R]: ...
    def join(self, other: Table[Any, Any], joiner: Callable[..., Any], **options: Any) -> Table[K, Any]:
        """Join with another table; rows without a partner are not in the result.

        other: the other table.
        joiner: function of the two values, or of the key and the two values.
        by: function of the value, or of key and value, that returns the key in the other table: a foreign-key join.
        value: type or serde of the results.
        store: name of the store of the result; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens if the function raises an error.
        """
        return self._join(other, joiner, "inner", **options)

    @overload
    def left_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[KO, V2],
        joiner: Callable[[V, V2 | None], R],
        *,
        by: Callable[[V], KO | None],
        value: SerdeLike[R] | None = ...,
        store: str | None = ...,
        name: str | None = ...,
        on_error: ErrorPolicy | None = ...,
    ) -> Table[K, R]: ...
    def left_join(self, other: Table[Any, Any], joiner: Callable[..., Any], **options: Any) -> Table[K, Any]:
        """Join with another table; rows of this table without a partner are joined with None.

        The arguments are those of :meth:`join`.
        """
        return self._join(other, joiner, "left", **options)

    def outer_join(
        self,
        other: Table[K, V2],
        joiner: Callable[[V | None, V2 | None], R],
        *,
        value: SerdeLike[R] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, R]:
        """Join with another table; rows of both tables without a partner are joined with None.

        The arguments are those of :meth:`join`, without ``by``.
        """
        return self._join(other, joiner, "outer", value=value, store=store, name=name, on_error=on_error)

    def _join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., Any],
        kind: JoinKind,
        *,
        by: Callable[..., Any] | None = None,
        value: SerdeLike[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, Any]:
        if not isinstance(other, TableJoins):
            raise TopologyError(f"a table is joined with a table, not with {type(other).__name__}")
        if by is None:
            return self._join_on_key(other, joiner, kind, value, store, name, on_error)
        node, node_name, operator, sources = join_on_foreign_key(
            self, other, by, joiner, is_left=kind == "left", value=value, store=store, name=name, on_error=on_error
        )
        return self._table(node, node_name, operator, value, sources)

    def _join_on_key(
        self,
        other: TableJoins[Any, Any],
        joiner: Callable[..., Any],
        kind: JoinKind,
        value: SerdeLike[Any] | None,
        store: str | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Table[K, Any]:
        naming = self._graph.naming
        merge_name = naming.or_else(name, "KTABLE-MERGE-")
        sources = self._graph.copartition(self._sources | other._sources)
        this, that = self._operator, other._operator
        if kind in ("left", "outer"):
            this.enable_old_values(force=True)
        if kind == "outer":
            that.enable_old_values(force=True)
        left = TableJoinSide(this, that, kind, joiner)
        right = TableJoinSide(that, this, "right" if kind == "left" else kind, _reversed(joiner))
        this_name = naming.or_else(name, "KTABLE-JOINTHIS-", "-join-this")
        other_name = naming.or_else(name, "KTABLE-JOINOTHER-", "-join-other")
        spec = None if store is None else StoreSpec(store, "timestamped", self._key, value, is_named=True)
        merge = TableJoinMerge(left, right, spec)
        this_rows, other_rows = this.require_rows(), that.require_rows()

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(this_name, left, self._name, on_error=on_error)
            writer.add_processor(other_name, right, other._name, on_error=on_error)
            writer.add_processor(merge_name, merge, this_name, other_name)
            writer.connect(this_name, *other_rows)
            writer.connect(other_name, *this_rows)
            if spec is not None:
                writer.add_store(spec, merge_name)

        def set_versioned(parent: str) -> None:
            left.is_versioned |= parent == self._name
            right.is_versioned |= parent == other._name

        node = GraphNode(merge_name, write, is_output_versioned=False, set_versioned=set_versioned)
        self._graph.add((self._node, other._node), node)
        return self._table(node, merge_name, merge, value, sources)

    def _table(
        self,
        node: GraphNode,
        name: str,
        operator: TableOperator,
        value: SerdeLike[Any] | None,
        sources: frozenset[str],
    ) -> Table[K, Any]:
        from barnabas.streams.table import Table

        return Table(self._graph, node, name, operator, self._key, value, sources)


def _reversed(joiner: Callable[..., Any]) -> Callable[..., Any]:
    if accepts(joiner, 3):
        return lambda key, one, other: joiner(key, other, one)
    return lambda one, other: joiner(other, one)
