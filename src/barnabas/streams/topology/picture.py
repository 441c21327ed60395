"""A picture of a topology, as the text of a Mermaid flowchart."""

from __future__ import annotations

from barnabas.streams.topology.node import Node, Topology
from barnabas.streams.topology.operators import Sink, Source

__all__ = ["mermaid"]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "&quot;") + '"'


class _Ids:
    """Short ids for names, because Mermaid does not accept every character in an id."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}

    def __call__(self, kind: str, name: str) -> str:
        return self._ids.setdefault((kind, name), f"{kind}{len(self._ids)}")


def _edges(node: Node, ids: _Ids) -> list[str]:
    at = ids("n", node.name)
    operator = node.operator
    lines = [f"  {at} --> {ids('n', child)}" for child in node.children]
    if isinstance(operator, Source):
        read = operator.topics if operator.pattern is None else (operator.pattern.pattern,)
        lines += [f"  {ids('t', topic)}[/{_quoted(topic)}/] --> {at}" for topic in read]
    if isinstance(operator, Sink):
        topic = operator.topic if operator.topic is not None else "chosen by a function"
        lines.append(f"  {at} --> {ids('t', topic)}[/{_quoted(topic)}/]")
    lines += [f"  {at} <-.-> {ids('s', store)}[({_quoted(store)})]" for store in node.stores]
    return lines


def mermaid(topology: Topology) -> str:
    """Return a Mermaid flowchart: topics, nodes in their sub-topologies, and stores."""
    ids = _Ids()
    lines = ["flowchart TB"]
    for sub_topology in topology.sub_topologies:
        kind = "global table" if sub_topology.is_global else "sub-topology"
        lines.append(f"  subgraph g{sub_topology.number}[{_quoted(f'{kind} {sub_topology.number}')}]")
        lines += [f"    {ids('n', node.name)}[{_quoted(node.name)}]" for node in sub_topology.nodes]
        lines.append("  end")
    for node in topology.nodes.values():
        lines += _edges(node, ids)
    return "\n".join(lines) + "\n"
