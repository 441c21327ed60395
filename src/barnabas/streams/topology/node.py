"""Nodes, sub-topologies and the topology: the result of building a graph, as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from barnabas.streams.topology.operators import Operator, Sink, Source
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["Node", "SubTopology", "Topology"]


@dataclass(eq=False)
class Node:
    """One node: its operator, its parents and children by name, and the stores that it is connected to."""

    name: str
    operator: Operator
    parents: tuple[str, ...] = ()
    children: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    on_error: Any = None  # the policy of this node, instead of the application's


@dataclass(eq=False)
class SubTopology:
    """Nodes that are connected by records or by stores: the unit that runs as one task for each partition.

    The nodes are in topological order. A sub-topology of a global table (``is_global``) has no tasks of its own.
    """

    number: int
    nodes: list[Node]
    is_global: bool = False

    @property
    def sources(self) -> list[Node]:
        """Nodes that read topics."""
        return [node for node in self.nodes if isinstance(node.operator, Source)]

    @property
    def topics(self) -> list[str]:
        """Names of the topics that are read, internal ones included, patterns not."""
        return [topic for node in self.sources for topic in node.operator.topics]  # type: ignore[attr-defined]

    @property
    def store_names(self) -> list[str]:
        """Names of the stores of all nodes, in order of their nodes."""
        return list(dict.fromkeys(name for node in self.nodes for name in node.stores))


@dataclass(eq=False)
class Topology:
    """A complete topology.

    stores: all stores by name.
    global_stores: name of each global store -> topic that it is a copy of.
    internal_topics: repartition topics by their name without the application's id -> number of partitions, if set.
    copartitioned: groups of names of source nodes whose topics must have the same number of partitions.
    """

    application_id: str
    nodes: dict[str, Node]
    sub_topologies: list[SubTopology]
    stores: dict[str, StoreSpec]
    global_stores: dict[str, str]
    internal_topics: dict[str, int | None]
    copartitioned: list[frozenset[str]]

    def decorate(self, internal: str) -> str:
        """Return the full name of an internal topic."""
        return f"{self.application_id}-{internal}"

    def changelog(self, store: str) -> str:
        """Return the name of the changelog topic of a store."""
        return f"{self.application_id}-{store}-changelog"

    @property
    def source_topics(self) -> list[str]:
        """Names of the topics that are read from outside, in order of the sources."""
        operators = [node.operator for node in self.nodes.values()]
        sources = [each for each in operators if isinstance(each, Source) and not each.is_internal]
        return list(dict.fromkeys(topic for each in sources for topic in each.topics))

    @property
    def frames(self) -> dict[str, Source]:
        """The sources that read DataFrames of Spark, by the names that stand for their topics."""
        operators = [node.operator for node in self.nodes.values()]
        return {each.topics[0]: each for each in operators if isinstance(each, Source) and each.frame is not None}

    @property
    def cluster_topics(self) -> list[str]:
        """The source topics without the names of DataFrames."""
        frames = self.frames
        return [topic for topic in self.source_topics if topic not in frames]

    @property
    def source_patterns(self) -> list[re.Pattern[str]]:
        """Patterns of topics that are read from outside."""
        operators = [node.operator for node in self.nodes.values()]
        return [each.pattern for each in operators if isinstance(each, Source) and each.pattern is not None]

    @property
    def sink_topics(self) -> list[str]:
        """Names of the topics that are written, without internal ones and those chosen by a function."""
        operators = [node.operator for node in self.nodes.values()]
        sinks = [each for each in operators if isinstance(each, Sink) and not each.is_internal]
        return list(dict.fromkeys(each.topic for each in sinks if each.topic is not None))

    def sub_topology_of(self, node: str) -> SubTopology:
        """Return the sub-topology that holds a node."""
        return next(each for each in self.sub_topologies if any(member.name == node for member in each.nodes))
