"""Kafka's text of a topology, equal to the text of ``Topology.describe()`` in Java, and below it how it runs here."""

from __future__ import annotations

from barnabas.streams.topology.java_order import TreeSet, hash_order
from barnabas.streams.topology.node import Node, SubTopology, Topology
from barnabas.streams.topology.operators import Sink, Source
from barnabas.streams.topology.stages import stages_of, stateless_of

__all__ = ["describe", "describe_execution"]


class _Drawn:
    """A node while it is described: its neighbours in Kafka's order."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.name
        self.size = 1  # number of downward paths from here, this node included
        self.before: TreeSet[_Drawn] = TreeSet(_compare)
        self.after: TreeSet[_Drawn] = TreeSet(_compare)

    def grow(self, size: int) -> None:
        self.size += size
        for each in self.before:
            each.grow(size)

    def text(self) -> str:
        operator = self.node.operator
        before, after = _names(self.before), _names(self.after)
        if isinstance(operator, Source):
            read = (
                f"[{', '.join(hash_order(operator.topics))}]" if operator.pattern is None else operator.pattern.pattern
            )
            return f"Source: {self.name} (topics: {read})\n      --> {after}"
        if isinstance(operator, Sink):
            if operator.topic is not None:
                return f"Sink: {self.name} (topic: {operator.topic})\n      <-- {before}"
            return f"Sink: {self.name} (extractor class: {_function_name(operator.extractor)})\n      <-- {before}"
        stores = ", ".join(hash_order(self.node.stores))
        return f"Processor: {self.name} (stores: [{stores}])\n      --> {after}\n      <-- {before}"


def _compare(one: _Drawn, other: _Drawn) -> int:
    if one is other:
        return 0
    if one.size != other.size:
        return other.size - one.size
    return -1 if one.name < other.name else 1


def _names(drawn: TreeSet[_Drawn]) -> str:
    return ", ".join(each.name for each in drawn) or "none"


def _function_name(function: object) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _drawn(sub_topology: SubTopology) -> list[_Drawn]:
    by_name = {node.name: _Drawn(node) for node in sub_topology.nodes}
    for name in hash_order(by_name):
        drawn = by_name[name]
        for parent in drawn.node.parents:
            before = by_name[parent]
            drawn.before.add(before)
            before.after.add(drawn)
            before.grow(drawn.size)
    return sorted(by_name.values(), key=lambda drawn: (-drawn.size, drawn.name))


def _describe_one(sub_topology: SubTopology) -> str:
    drawn = _drawn(sub_topology)
    if sub_topology.is_global:
        nodes = "".join(f"    {each.text()}\n" for each in drawn)
        return f"Sub-topology: {sub_topology.number} for global store (will not generate tasks)\n{nodes}"
    nodes = "".join(f"    {each.text()}\n" for each in drawn)
    return f"Sub-topology: {sub_topology.number}\n{nodes}\n"


def describe(topology: Topology) -> str:
    """Return the text that Kafka's ``Topology.describe().toString()`` has for the same topology."""
    return "Topologies:\n   " + "  ".join(_describe_one(each) for each in topology.sub_topologies)


def describe_execution(topology: Topology) -> str:
    """Return how each part runs here: tasks, repartitions and the stores that have changelogs."""
    lines = ["How it runs:"]
    _, looped = stages_of(topology)
    stateless = stateless_of(topology)
    for each in topology.sub_topologies:
        read = [topic for topic in each.topics if topic not in topology.internal_topics]
        internal = [topic for topic in each.topics if topic in topology.internal_topics]
        if each.is_global:
            lines.append(f"  Sub-topology {each.number}: every task has a copy of {', '.join(read)}")
            continue
        where = ", stateless: it runs where the records are read" if each.number in stateless else ""
        lines.append(f"  Sub-topology {each.number}: one task for each partition{where}")
        topics = [topic for topic in read if topic not in topology.frames]
        if topics:
            lines.append(f"    reads topics: {', '.join(topics)}")
        lines += [f"    reads a DataFrame: {name}" for name in read if name in topology.frames]
        for topic in internal:
            if topic in looped:
                lines.append(f"    leads back, so read from a topic in a later batch: {topology.decorate(topic)}")
            else:
                lines.append(f"    repartitioned by Spark's shuffle, without a topic: {topic}")
        for name in each.store_names:
            logged = topology.stores[name].is_named
            where = f"changelog topic {topology.changelog(name)}" if logged else "no changelog; kept in the checkpoint"
            lines.append(f"    store {name}: {where}")
    return "\n".join(lines) + "\n"
