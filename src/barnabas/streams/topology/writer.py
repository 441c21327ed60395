"""Writes nodes, stores and internal topics of a topology, and cuts it into sub-topologies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.streams.errors import TopologyError
from barnabas.streams.topology.node import Node, SubTopology, Topology
from barnabas.streams.topology.operators import Operator, Source
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["TopologyWriter"]


class _Groups:
    """Sets of names that were united, by union and find."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, name: str) -> str:
        parent = self._parent.setdefault(name, name)
        while parent != name:
            self._parent[name] = self._parent[parent]
            name, parent = parent, self._parent[parent]
        return name

    def unite(self, one: str, others: Iterable[str]) -> None:
        for other in others:
            self._parent[self.root(other)] = self.root(one)


class TopologyWriter:
    """Collects nodes in topological order."""

    def __init__(self, application_id: str) -> None:
        self._application_id = application_id
        self._nodes: dict[str, Node] = {}
        self._stores: dict[str, StoreSpec] = {}
        self._users: dict[str, str] = {}  # name of a store -> the first processor that uses it
        self._globals: dict[str, str] = {}
        self._internal: dict[str, int | None] = {}
        self._topics: dict[str, str] = {}  # topic -> source node
        self._groups = _Groups()

    def add_source(self, name: str, source: Source, on_error: Any = None) -> None:
        """Add a node that reads topics."""
        for topic in source.topics:
            if topic in self._topics:
                raise TopologyError(
                    f"topic {topic} is read by {self._topics[topic]} and by {name}; read it once and use that twice"
                )
            self._topics[topic] = name
        self._add(Node(name, source, on_error=on_error))

    def add_processor(self, name: str, operator: Operator, *parents: str, on_error: Any = None) -> None:
        """Add a node below its parents."""
        self._add(Node(name, operator, tuple(dict.fromkeys(parents)), on_error=on_error))

    def add_store(self, store: StoreSpec, *processors: str) -> None:
        """Add a store and connect it to processors."""
        if store.name in self._globals or self._stores.get(store.name, store) != store:
            raise TopologyError(f"two different stores have the name {store.name}")
        self._stores[store.name] = store
        for processor in processors:
            self.connect(processor, store.name)

    def connect(self, processor: str, *stores: str) -> None:
        """Connect a processor to stores; processors that share a store are in one sub-topology."""
        for store in stores:
            if store not in self._stores:
                raise TopologyError(f"{processor} needs the store {store}, which is not part of the topology")
            node = self._nodes[processor]
            if store not in node.stores:
                node.stores.append(store)
            self._groups.unite(self._users.setdefault(store, processor), (processor,))

    def add_global_store(
        self, store: StoreSpec, name: str, source: Source, processor: str, operator: Operator, on_error: Any = None
    ) -> None:
        """Add a store that is a copy of a whole topic, with the nodes that maintain it."""
        self.add_source(name, source, on_error)
        self.add_processor(processor, operator, name)
        self._nodes[processor].stores.append(store.name)
        if store.name in self._stores:
            raise TopologyError(f"two different stores have the name {store.name}")
        self._stores[store.name] = store
        self._globals[store.name] = source.topics[0]

    def add_internal_topic(self, name: str, partitions: int | None = None) -> None:
        """Add a repartition topic."""
        self._internal[name] = partitions

    def versioned(self, store: str) -> StoreSpec | None:
        """Return the store if it is versioned."""
        spec = self._stores.get(store)
        return spec if spec is not None and spec.kind == "versioned" else None

    def finish(self, copartitioned: list[frozenset[str]]) -> Topology:
        """Return the topology."""
        if not self._nodes:
            raise TopologyError(f"application {self._application_id} has no streams or tables")
        for node in self._nodes.values():
            for parent in node.parents:
                self._nodes[parent].children.append(node.name)
        return Topology(
            self._application_id,
            self._nodes,
            self._cut(),
            self._stores,
            self._globals,
            self._internal,
            copartitioned,
        )

    def _add(self, node: Node) -> None:
        if node.name in self._nodes:
            raise TopologyError(f"two nodes have the name {node.name}; pass different values of name=")
        for parent in node.parents:
            assert parent in self._nodes, f"{node.name} is written before its parent {parent}"
        self._nodes[node.name] = node
        self._groups.unite(node.name, node.parents)

    def _cut(self) -> list[SubTopology]:
        groups: dict[str, SubTopology] = {}
        for name, node in self._nodes.items():
            root = self._groups.root(name)
            if root not in groups:
                groups[root] = SubTopology(len(groups), [])
            group = groups[root]
            group.nodes.append(node)
            group.is_global |= any(store in self._globals for store in node.stores)
        return list(groups.values())
