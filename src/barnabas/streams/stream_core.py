"""What all operators of a stream share: the place in the graph, the serdes, and how a node is added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.processor import declared_stores
from barnabas.streams.repartition import repartition_node
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import Operator, Process
from barnabas.streams.topology.writer import TopologyWriter

if TYPE_CHECKING:
    from barnabas.streams.stream import Stream

__all__ = ["StreamCore"]

K = TypeVar("K")
V = TypeVar("V")


class StreamCore(Generic[K, V]):
    """The place of a stream in the graph. Streams are made by :class:`App` and by operators, not by users."""

    def __init__(
        self,
        graph: Graph,
        node: GraphNode,
        name: str,
        key: SerdeLike[Any] | None,
        value: SerdeLike[Any] | None,
        sources: frozenset[str],
        *,
        repartition_required: bool = False,
    ) -> None:
        self._graph = graph
        self._node = node
        self._name = name
        self._key = key
        self._value = value
        self._sources = sources
        self._repartition_required = repartition_required
        self._repartitioned: tuple[GraphNode, str] | None = None  # shared by the joins of this stream

    def _stream(
        self,
        node: GraphNode,
        name: str,
        key: SerdeLike[Any] | None,
        value: SerdeLike[Any] | None,
        *,
        sources: frozenset[str] | None = None,
        repartition_required: bool = False,
    ) -> Stream[Any, Any]:
        from barnabas.streams.stream import Stream

        read = self._sources if sources is None else sources
        return Stream(self._graph, node, name, key, value, read, repartition_required=repartition_required)

    def _child(
        self, operator: Operator, prefix: str, name: str | None, on_error: ErrorPolicy | None
    ) -> tuple[GraphNode, str]:
        """Add a node below this stream; returns it with its name."""
        node_name = self._graph.naming.or_else(name, prefix)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)

        return self._graph.add(self._node, GraphNode(node_name, write, operator=operator)), node_name

    def _processor(
        self,
        factory: Callable[[], Any],
        prefix: str,
        stores: tuple[str, ...],
        name: str | None,
        on_error: ErrorPolicy | None,
        *,
        fixed: bool = False,
    ) -> tuple[GraphNode, str]:
        """Add a processor with the stores that it declares."""
        node_name = self._graph.naming.processor(prefix) if name is None else name
        own = declared_stores(factory)
        operator = Process(factory, (*(spec.name for spec in own), *stores), is_fixed_key=fixed)

        def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
            writer.add_processor(node_name, operator, *parents, on_error=on_error)
            for spec in own:
                writer.add_store(spec, node_name)
            writer.connect(node_name, *stores)

        return self._graph.add(self._node, GraphNode(node_name, write, operator=operator)), node_name

    def _repartitioned_for_join(self, name: str, on_error: ErrorPolicy | None) -> StreamCore[K, V]:
        """This stream behind a repartition, which all joins of this stream share unless they have names."""
        made, source = repartition_node(self._graph, name, self._key, self._value, on_error=on_error)
        if self._repartitioned is None or name != self._name:
            self._repartitioned = self._graph.add(self._node, made), source
        node, _ = self._repartitioned
        return self._stream(node, source, self._key, self._value, sources=frozenset({source}))
