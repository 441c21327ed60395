"""The graph that the DSL builds: logical nodes with Kafka's numbering, written out to a topology.

Each call of the DSL adds a logical node, which writes one or more nodes of the topology. The order in which nodes are
written decides the numbers of sub-topologies and the order in which a node calls its children, so it follows Kafka's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from barnabas.streams.errors import TopologyError
from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import DropNullKeys, Operator, Source
from barnabas.streams.topology.writer import TopologyWriter

__all__ = ["Graph", "GraphNode", "Naming"]


class GraphNode:
    """A logical node. ``write`` adds its nodes to the topology; it gets the names of the parents."""

    def __init__(
        self,
        name: str,
        write: Callable[[TopologyWriter, tuple[str, ...]], None],
        *,
        operator: Operator | None = None,
        drop_null_keys: DropNullKeys | None = None,
        keeps_null_keys: bool = False,
        window_grace_ms: int | None = None,
        is_output_versioned: bool | None = None,
        set_versioned: Callable[[str], None] | None = None,
        refuses_versioned: bool = False,
    ) -> None:
        self.name = name
        self.write = write
        self.operator = operator
        self.drop_null_keys = drop_null_keys  # the filter of a repartition
        self.keeps_null_keys = keeps_null_keys  # a left or outer join, which joins null keys with nothing
        self.window_grace_ms = window_grace_ms  # time after the end of a window at which it closes
        self.is_output_versioned = is_output_versioned  # None: as the parents
        self.set_versioned = set_versioned  # called with the name of each parent whose output is versioned
        self.refuses_versioned = refuses_versioned
        self.parents: list[GraphNode] = []
        self.children: list[GraphNode] = []
        self.priority = 0
        self.is_written = False


class Naming:
    """Names with running numbers, as Kafka gives them."""

    def __init__(self) -> None:
        self._index = count()

    def processor(self, prefix: str) -> str:
        """Return the next name of a node."""
        return f"{prefix}{next(self._index):010d}"

    def store(self, prefix: str) -> str:
        """Return the next name of a store."""
        return f"{prefix}STATE-STORE-{next(self._index):010d}"

    def or_else(self, name: str | None, prefix: str, suffix: str = "") -> str:
        """Return the user's name with a suffix, or the next name. A number is used up in both cases."""
        generated = self.processor(prefix)
        return generated if name is None else name + suffix


class Graph:
    """All logical nodes of an application."""

    def __init__(self, application_id: str) -> None:
        self.application_id = application_id
        self.naming = Naming()
        self.root = GraphNode("root", lambda writer, parents: None)
        self._priorities = count()
        self._nodes: list[GraphNode] = []
        self._copartitioned: list[frozenset[str]] = []
        self._extra_topics: dict[str, int | None] = {}

    def add(self, parents: GraphNode | Iterable[GraphNode], child: GraphNode) -> GraphNode:
        """Add a logical node below its parents."""
        for parent in (parents,) if isinstance(parents, GraphNode) else tuple(parents):
            if child not in parent.children:
                parent.children.append(child)
            if parent not in child.parents:
                child.parents.append(parent)
            child.priority = next(self._priorities)
        if child not in self._nodes:
            self._nodes.append(child)
        return child

    def copartition(self, sources: Iterable[str]) -> frozenset[str]:
        """Note that the topics of these source nodes must have the same number of partitions."""
        group = frozenset(sources)
        self._copartitioned.append(group)
        return group

    def build(self) -> Topology:
        """Write all nodes and return the topology. Raises :class:`TopologyError` if it is not valid."""
        self._merge_sources()
        self._set_null_key_filters()
        self._set_versioned()
        writer = TopologyWriter(self.application_id)
        for node in self._nodes:
            node.is_written = False
        serial = count()
        queue = [(self.root.priority, next(serial), self.root)]
        self.root.is_written = True
        while queue:
            node = heapq.heappop(queue)[2]
            if not node.is_written and all(parent.is_written for parent in node.parents):
                node.write(writer, tuple(parent.name for parent in node.parents))
                node.is_written = True
            for child in node.children:
                if not child.is_written:
                    heapq.heappush(queue, (child.priority, next(serial), child))
        return writer.finish(self._copartitioned)

    def _merge_sources(self) -> None:
        """Streams of the same topics share one source node; the first one stays."""
        by_topic: dict[str, GraphNode] = {}
        for node in list(self.root.children):
            source = node.operator
            if not isinstance(source, Source):
                continue
            keys = [f"\0{source.pattern.pattern}"] if source.pattern is not None else list(source.topics)
            first = next((by_topic[key] for key in keys if key in by_topic), None)
            if first is None:
                by_topic.update(dict.fromkeys(keys, node))
                continue
            assert isinstance(first.operator, Source)
            if set(first.operator.topics) != set(source.topics):
                raise TopologyError(
                    f"two streams read overlapping sets of topics: {', '.join(first.operator.topics)} and "
                    f"{', '.join(source.topics)}; read the same set in both, or one topic each"
                )
            self._move_children(node, first)

    def _move_children(self, node: GraphNode, target: GraphNode) -> None:
        self.root.children.remove(node)
        for child in node.children:
            child.parents = [target if parent is node else parent for parent in child.parents]
            child.parents = list(dict.fromkeys(child.parents))
            if child not in target.children:
                target.children.append(child)

    def _set_null_key_filters(self) -> None:
        """Null keys are dropped before a repartition unless a left or outer join below makes results of them."""
        relaxed: dict[int, bool] = {}

        def is_relaxed(node: GraphNode) -> bool:
            if id(node) not in relaxed:
                relaxed[id(node)] = False
                relaxed[id(node)] = any(child.keeps_null_keys or is_relaxed(child) for child in node.children)
            return relaxed[id(node)]

        for node in self._nodes:
            if node.drop_null_keys is not None:
                node.drop_null_keys.is_active = not is_relaxed(node)

    def _set_versioned(self) -> None:
        for node in self._nodes:
            if node.set_versioned is not None:
                for parent in node.parents:
                    if self._is_versioned(parent):
                        node.set_versioned(parent.name)
            if node.refuses_versioned and all(self._is_versioned(parent) for parent in node.parents):
                raise TopologyError(f"{node.name}: suppress() cannot follow a versioned table")

    def _is_versioned(self, node: GraphNode) -> bool:
        if node is self.root:
            return False
        if node.is_output_versioned is not None:
            return node.is_output_versioned
        return all(self._is_versioned(parent) for parent in node.parents)


def window_grace_ms(node: GraphNode) -> int:
    """Return how long after its end the windows above a node close. Raises :class:`TopologyError` if there are none."""
    if node.window_grace_ms is not None:
        return node.window_grace_ms
    if not node.parents:
        raise TopologyError(f"{node.name}: suppress(until='window_closes') needs a windowed aggregation before it")
    return max(window_grace_ms(parent) for parent in node.parents)


def ignore(*_: Any) -> None:
    """Do nothing; the writer of a logical node that has no node of its own."""
