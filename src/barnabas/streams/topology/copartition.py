"""The check that topics that are joined have the same number of partitions, and the size of repartition topics."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.streams.errors import TopologyError
from barnabas.streams.topology.node import SubTopology, Topology
from barnabas.streams.topology.operators import Sink, Source

__all__ = ["check_partitions", "task_counts"]


def check_partitions(topology: Topology, partitions: Mapping[str, int]) -> dict[str, int]:
    """Return the number of partitions of every topic that is read, repartition topics included.

    partitions: number of partitions of each source topic.
    A repartition topic has as many partitions as the topics it is joined with, otherwise as many as the largest source
    of the sub-topology that writes it. Raises :class:`TopologyError` if a topic does not exist, or if topics that are
    joined differ in their number of partitions.
    """
    missing = [topic for topic in topology.source_topics if topic not in partitions]
    if missing:
        raise TopologyError(f"source topics do not exist: {', '.join(missing)}; create them before the start")
    known = {topic: partitions[topic] for topic in topology.source_topics}
    known |= {topic: number for topic, number in topology.internal_topics.items() if number is not None}
    _agree(topology, known)
    while open_topics := [topic for topic in topology.internal_topics if topic not in known]:
        sized = {topic: size for topic in open_topics if (size := _writers_size(topology, topic, known))}
        if not sized:
            raise TopologyError(
                f"the number of partitions of {', '.join(open_topics)} depends on itself; use repartition(partitions=)"
            )
        topic = next(iter(sized))
        known[topic] = sized[topic]
        _agree(topology, known)
    for pattern in topology.source_patterns:
        known |= {topic: number for topic, number in partitions.items() if pattern.fullmatch(topic)}
    return known


def task_counts(topology: Topology, partitions: Mapping[str, int]) -> dict[int, int]:
    """Return the number of tasks of each sub-topology: the largest number of partitions of its topics."""
    counts = {}
    for each in topology.sub_topologies:
        if not each.is_global:
            counts[each.number] = max((partitions.get(topic, 0) for topic in _topics(each, partitions)), default=0)
    return counts


def _topics(sub_topology: SubTopology, partitions: Mapping[str, int]) -> list[str]:
    topics = list(sub_topology.topics)
    for node in sub_topology.sources:
        pattern = node.operator.pattern  # type: ignore[attr-defined]
        if pattern is not None:
            topics += [topic for topic in partitions if pattern.fullmatch(topic)]
    return topics


def _agree(topology: Topology, known: dict[str, int]) -> None:
    """Check each group; give its open repartition topics the size of the others."""
    for group in topology.copartitioned:
        topics = [topic for name in sorted(group) if name in topology.nodes for topic in _read_by(topology, name)]
        fixed = {
            topic: known[topic]
            for topic in topics
            if topic in known and (topic not in topology.internal_topics or topology.internal_topics[topic] is not None)
        }
        if len(set(fixed.values())) > 1:
            sizes = ", ".join(f"{topic} has {size}" for topic, size in fixed.items())
            raise TopologyError(
                f"topics that are joined must have the same number of partitions: {sizes}; "
                f"call repartition(partitions=) on one side, or create the topics again"
            )
        if fixed:
            size = next(iter(fixed.values()))
            known |= {topic: size for topic in topics if topic in topology.internal_topics}
        elif sized := [known[topic] for topic in topics if topic in known]:
            known |= dict.fromkeys(topics, max(sized)) if len(sized) == len(topics) else {}


def _read_by(topology: Topology, node: str) -> tuple[str, ...]:
    operator = topology.nodes[node].operator
    return operator.topics if isinstance(operator, Source) else ()


def _writers_size(topology: Topology, topic: str, known: Mapping[str, int]) -> int | None:
    """The largest source of the sub-topologies that write a topic; None while one of them is not known."""
    sizes = []
    for each in topology.sub_topologies:
        if any(isinstance(node.operator, Sink) and node.operator.topic == topic for node in each.nodes):
            others = [name for name in each.topics if name != topic]
            if any(name not in known for name in others):
                return None
            sizes += [known[name] for name in others]
    return max(sizes, default=None)
