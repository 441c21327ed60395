"""Stages of a topology: the order of sub-topologies that are connected by repartition topics, and the loops in it."""

from __future__ import annotations

from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import Sink, Source

__all__ = ["stages_of"]


def stages_of(topology: Topology) -> tuple[dict[int, int], frozenset[str]]:
    """The stage of each sub-topology, and the repartition topics that lead back."""
    reader_of = {
        topic: each.number
        for each in topology.sub_topologies
        for node in each.nodes
        if isinstance(node.operator, Source) and node.operator.is_internal
        for topic in node.operator.topics
    }
    edges: dict[int, list[tuple[str, int]]] = {}
    for each in topology.sub_topologies:
        sinks = [node.operator for node in each.nodes if isinstance(node.operator, Sink) and node.operator.is_internal]
        edges[each.number] = [(sink.topic, reader_of[sink.topic]) for sink in sinks if sink.topic in reader_of]
    looped: set[str] = set()
    order: list[int] = []
    state: dict[int, str] = {}

    def visit(number: int) -> None:
        state[number] = "open"
        for topic, target in edges[number]:
            if target not in state:
                visit(target)
            elif state[target] == "open":
                looped.add(topic)
        state[number] = "done"
        order.append(number)

    for number in edges:
        if number not in state:
            visit(number)
    stages = dict.fromkeys(edges, 0)
    for number in reversed(order):
        for topic, target in edges[number]:
            if topic not in looped:
                stages[target] = max(stages[target], stages[number] + 1)
    return stages, frozenset(looped)
