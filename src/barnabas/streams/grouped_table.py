"""A table grouped by a new key: count, reduce and aggregate with an adder and a subtractor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.repartition import REPARTITION_SUFFIX
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.table import Table
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import Sink, Source
from barnabas.streams.topology.stores import StoreSpec
from barnabas.streams.topology.table_operators import TableAggregate
from barnabas.streams.topology.writer import TopologyWriter

__all__ = ["GroupedTable"]

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


def _plus_one(aggregate: int, value: object) -> int:
    return aggregate + 1


def _minus_one(aggregate: int, value: object) -> int:
    return aggregate - 1


class GroupedTable(Generic[K, V]):
    """Rows of a table grouped by a new key; made by :meth:`Table.group_by`."""

    def __init__(
        self,
        graph: Graph,
        node: GraphNode,
        key: SerdeLike[Any] | None,
        value: SerdeLike[Any] | None,
        *,
        topic: str | None,
        on_error: ErrorPolicy | None = None,
    ) -> None:
        self._graph = graph
        self._node = node
        self._key = key
        self._value = value
        self._topic = topic
        self._on_error = on_error  # of the repartition
        self._repartitioned: GraphNode | None = None

    def count(
        self, *, store: str | None = None, name: str | None = None, on_error: ErrorPolicy | None = None
    ) -> Table[K, int]:
        """Count the rows of each group.

        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KTABLE-AGGREGATE-", lambda: 0, _plus_one, _minus_one, int, store, name, on_error)

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, V]:
        """Combine the values of each group.

        adder: function of the aggregate and a value that is new in the group.
        subtractor: function of the aggregate and a value that left the group.
        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KTABLE-REDUCE-", None, adder, subtractor, self._value, store, name, on_error)

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[A, V], A],
        subtractor: Callable[[A, V], A],
        *,
        value: SerdeLike[A] | None = None,
        store: str | None = None,
        name: str | None = None,
        on_error: ErrorPolicy | None = None,
    ) -> Table[K, A]:
        """Aggregate the values of each group.

        initializer: function that returns the first aggregate of a group.
        adder: function of the aggregate and a value that is new in the group; three parameters begin with the key.
        subtractor: function of the aggregate and a value that left the group.
        value: type or serde of the aggregate.
        store: name of the store; a named store has a changelog topic.
        name: name of the node.
        on_error: what happens to a record for which a function raises an error; by default the application's policy.
        """
        return self._aggregate("KTABLE-AGGREGATE-", initializer, adder, subtractor, value, store, name, on_error)

    def _aggregate(
        self,
        prefix: str,
        initializer: Callable[[], Any] | None,
        adder: Callable[..., Any],
        subtractor: Callable[..., Any],
        value: SerdeLike[Any] | None,
        store: str | None,
        name: str | None,
        on_error: ErrorPolicy | None,
    ) -> Table[K, Any]:
        naming = self._graph.naming
        # The store of a reduce is named like that of an aggregation, as in Kafka.
        store_name = store if store is not None else naming.store("KTABLE-AGGREGATE-")
        sink_name = naming.or_else(name, "KSTREAM-SINK-", "-sink")
        source_name = naming.or_else(name, "KSTREAM-SOURCE-", "-source")
        node_name = naming.or_else(name, prefix)
        topic = (self._topic if self._topic is not None else store_name) + REPARTITION_SUFFIX
        if self._repartitioned is None or self._topic is None:
            self._repartitioned = self._repartition(sink_name, source_name, topic)
        self._graph.add(self._node, self._repartitioned)
        spec = StoreSpec(store_name, "timestamped", self._key, value, is_named=store is not None)
        operator = TableAggregate(spec, initializer, adder, subtractor)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)
            writer.add_store(spec, node_name)

        node = GraphNode(node_name, write, is_output_versioned=False)
        self._graph.add(self._repartitioned, node)
        return Table(self._graph, node, node_name, operator, self._key, value, frozenset({source_name}))

    def _repartition(self, sink_name: str, source_name: str, topic: str) -> GraphNode:
        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_internal_topic(topic)
            sink = Sink(topic, None, self._key, self._value, payload="change", is_internal=True)
            writer.add_processor(sink_name, sink, *parents, on_error=self._on_error)
            source = Source((topic,), None, self._key, self._value, payload="change", is_internal=True)
            writer.add_source(source_name, source, self._on_error)

        return GraphNode(source_name, write)
