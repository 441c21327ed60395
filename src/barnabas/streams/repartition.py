"""Repartitioning: a filter, a sink and a source of an internal topic, with Kafka's names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from barnabas.streams.policies import ErrorPolicy
from barnabas.streams.serdes import SerdeLike
from barnabas.streams.topology.graph import Graph, GraphNode
from barnabas.streams.topology.operators import DropNullKeys, Sink, Source
from barnabas.streams.topology.writer import TopologyWriter

__all__ = ["REPARTITION_SUFFIX", "repartition", "repartition_node"]

REPARTITION_SUFFIX: Final = "-repartition"
_GENERATED: Final = re.compile(r"KSTREAM.*-[0-9]{10}")


def repartition_node(
    graph: Graph,
    prefix: str,
    key: SerdeLike[Any] | None,
    value: SerdeLike[Any] | None,
    *,
    partitions: int | None = None,
    partitioner: Callable[..., int | None] | None = None,
    on_error: ErrorPolicy | None = None,
) -> tuple[GraphNode, str]:
    """Make the logical node of a repartition, without adding it; returns it with the name of its source."""
    topic = prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX
    sink_name = graph.naming.processor("KSTREAM-SINK-")
    filter_name = graph.naming.processor("KSTREAM-FILTER-")
    source_name = graph.naming.processor("KSTREAM-SOURCE-")
    if not _GENERATED.fullmatch(prefix):
        sink_name, filter_name, source_name = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    drop = DropNullKeys()

    def write(writer: TopologyWriter, parents: tuple[str, ...]) -> None:
        writer.add_internal_topic(topic, partitions)
        writer.add_processor(filter_name, drop, *parents)
        sink = Sink(topic, None, key, value, partitioner, is_internal=True)
        writer.add_processor(sink_name, sink, filter_name, on_error=on_error)
        writer.add_source(source_name, Source((topic,), None, key, value, is_internal=True), on_error)

    return GraphNode(source_name, write, drop_null_keys=drop), source_name


def repartition(
    graph: Graph,
    parent: GraphNode,
    prefix: str,
    key: SerdeLike[Any] | None,
    value: SerdeLike[Any] | None,
    *,
    partitions: int | None = None,
    partitioner: Callable[..., int | None] | None = None,
    on_error: ErrorPolicy | None = None,
) -> tuple[GraphNode, str]:
    """Add a repartition below a node; returns its logical node and the name of its source."""
    node, source = repartition_node(
        graph, prefix, key, value, partitions=partitions, partitioner=partitioner, on_error=on_error
    )
    return graph.add(parent, node), source
