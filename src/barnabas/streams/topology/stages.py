"""Stages of a topology: the order of sub-topologies that are connected by repartition topics, and the loops in it."""

from __future__ import annotations

from barnabas.streams.topology.node import SubTopology, Topology
from barnabas.streams.topology.operators import GlobalTableJoin, Process, Sink, Source

__all__ = ["stages_of", "stateless_of"]


def stateless_of(topology: Topology) -> frozenset[int]:
    """The sub-topologies that can run where records are read, without an operator of their own.

    They read topics of the cluster by name, and have neither stores nor processors, which know times and punctuators.
    """
    return frozenset(each.number for each in topology.sub_topologies if _is_stateless(each))


def _is_stateless(sub_topology: SubTopology) -> bool:
    operators = [node.operator for node in sub_topology.nodes]
    reads_else = any(
        isinstance(each, Source) and (each.is_internal or each.pattern or each.frame) for each in operators
    )
    has_state = sub_topology.store_names or any(isinstance(each, Process | GlobalTableJoin) for each in operators)
    return not (reads_else or has_state or sub_topology.is_global)


def stages_of(topology: Topology, stateless: frozenset[int] = frozenset()) -> tuple[dict[int, int], frozenset[str]]:
    """The stage of each sub-topology, and the repartition topics that lead back.

    stateless: sub-topologies that run where records are read; their stage is -1.
    """
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
                stages[target] = max(stages[target], stages[number] + (number not in stateless))
    return stages | dict.fromkeys(stateless, -1), frozenset(looped)
