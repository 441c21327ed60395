"""The drawn picture of a topology, as SVG: topics, nodes in the boxes of their sub-topologies, stores, and what flows.

Sub-topologies are placed by stage, from top to bottom, with a row of topics above and below each stage. Within a box
the nodes are in rows by their longest distance from a source; a store is at the right of the first node that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal
from xml.sax.saxutils import escape

from barnabas.streams.topology.node import Node, SubTopology, Topology
from barnabas.streams.topology.operators import Sink, Source
from barnabas.streams.topology.stages import stages_of

__all__ = ["svg"]

_CHARACTER: Final = 6.7  # width of a character of a label
_HEIGHT: Final = 26.0  # of a node, a topic and a store
_ROW: Final = 52.0  # from one row of a box to the next
_GAP: Final = 18.0  # between things side by side
_PADDING: Final = 16.0  # between a box and what is in it
_TITLE: Final = 22.0  # height of the title of a box
_TOPICS: Final = 70.0  # height of a row of topics
_MARGIN: Final = 40.0  # at the right, where edges lead back to an earlier stage

_STYLE: Final = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1d2733;text-anchor:middle}"
    ".title{font-weight:bold;fill:#5a6b7d;text-anchor:start}"
    ".box{fill:#f4f7fa;stroke:#b8c4d0}.node{fill:#fff;stroke:#4a6fa5}.topic{fill:#e3f1e6;stroke:#3f8f58}"
    ".store{fill:#fbf0dc;stroke:#b9852f}path{fill:none;stroke:#5a6b7d;stroke-width:1.2}.uses{stroke-dasharray:3 3}"
)


@dataclass
class _Place:
    """A rectangle of the picture with a label; x and y are its upper left corner."""

    label: str
    kind: Literal["node", "topic", "store"]
    x: float = 0.0
    y: float = 0.0
    width: float = field(init=False)

    def __post_init__(self) -> None:
        self.width = max(60.0, _CHARACTER * len(self.label) + 22)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def draw(self) -> str:
        x, y, width = self.x, self.y, self.width
        text = f'<text x="{self.middle:.1f}" y="{y + 17:.1f}">{escape(self.label)}</text>'
        if self.kind == "store":
            side = (
                f'd="M{x:.1f} {y + 4:.1f}v{_HEIGHT - 8:.1f}a{width / 2:.1f} 4 0 0 0 {width:.1f} 0v-{_HEIGHT - 8:.1f}"'
            )
            lid = f'cx="{self.middle:.1f}" cy="{y + 4:.1f}" rx="{width / 2:.1f}" ry="4"'
            return f'<path class="store" style="fill:#fbf0dc" {side}/><ellipse class="store" {lid}/>{text}'
        round_ = 12 if self.kind == "topic" else 3
        size = f'width="{width:.1f}" height="{_HEIGHT}"'
        return f'<rect class="{self.kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="{round_}"/>{text}'


@dataclass
class _Box:
    """A sub-topology with its nodes and stores, placed relative to its own corner until it is moved."""

    title: str
    nodes: dict[str, _Place]
    stores: dict[str, _Place]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    def move(self, x: float, y: float) -> None:
        self.x, self.y = x, y
        for place in (*self.nodes.values(), *self.stores.values()):
            place.x += x
            place.y += y

    def draw(self) -> str:
        size = f'x="{self.x:.1f}" y="{self.y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}"'
        title = f'<text class="title" x="{self.x + 8:.1f}" y="{self.y + 15:.1f}">{escape(self.title)}</text>'
        return f'<rect class="box" rx="6" {size}/>{title}'


def svg(topology: Topology) -> str:
    """Return the picture of a topology as an SVG document."""
    stages, _ = stages_of(topology)
    boxes = [_box(each) for each in topology.sub_topologies]
    last = max(stages.values()) + 1
    rows = _topic_rows(topology, stages)
    topics = {name: _Place(name, "topic") for name in rows}
    y = 10.0
    for stage in range(last + 1):
        row_y, y = y, y + _TOPICS
        x, height = 10.0, 0.0
        for sub_topology, box in zip(topology.sub_topologies, boxes, strict=True):
            if stages[sub_topology.number] == stage:
                box.move(max(x, _above(topology, sub_topology, boxes) - box.width / 2), y)
                x = box.x
                x += box.width + 2 * _GAP
                height = max(height, box.height)
        y += height + (_PADDING if height else 0)
        _place_topics(topology, [topics[name] for name, row in rows.items() if row == stage], boxes, row_y)
    places = [*topics.values(), *(each for box in boxes for each in (*box.nodes.values(), *box.stores.values()))]
    width = max([place.x + place.width for place in places] + [box.x + box.width for box in boxes]) + _MARGIN
    drawn = [
        *(box.draw() for box in boxes),
        *_edges(topology, boxes, topics, width - _MARGIN / 2),
        *(place.draw() for place in places),
    ]
    height = max([place.y + _HEIGHT for place in places] + [box.y + box.height for box in boxes]) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n<title>{escape(topology.application_id)}</title>\n'
        f"<style>{_STYLE}</style>\n"
        '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8" style="fill:#5a6b7d;stroke:none"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _box(sub_topology: SubTopology) -> _Box:
    ranks: dict[str, int] = {}
    for node in sub_topology.nodes:  # parents come before their children
        ranks[node.name] = max((ranks[parent] + 1 for parent in node.parents if parent in ranks), default=0)
    nodes = {node.name: _Place(node.name, "node") for node in sub_topology.nodes}
    stores: dict[str, _Place] = {}
    width = 0.0
    for rank in range(max(ranks.values()) + 1):
        row = [node for node in sub_topology.nodes if ranks[node.name] == rank]
        row.sort(key=lambda node: _wish(node, nodes))
        x = _PADDING
        for node in row:
            place = nodes[node.name]
            place.x, place.y = max(x, _wish(node, nodes) - place.width / 2), _TITLE + 4 + rank * _ROW
            x = place.x + place.width + _GAP
            for name in node.stores:
                if name not in stores:
                    stores[name] = _Place(name, "store", x, place.y)
                    x += stores[name].width + _GAP
        width = max(width, x - _GAP + _PADDING)
    kind = "global table" if sub_topology.is_global else "sub-topology"
    height = _TITLE + 4 + max(ranks.values()) * _ROW + _HEIGHT + _PADDING
    return _Box(f"{kind} {sub_topology.number}", nodes, stores, width, height)


def _above(topology: Topology, sub_topology: SubTopology, boxes: list[_Box]) -> float:
    """The middle of the node that sends the first repartitioned records to a sub-topology; 0 if there is none."""
    placed = {name: place for box in boxes for name, place in box.nodes.items()}
    read = set(sub_topology.topics)
    for node in topology.nodes.values():
        if isinstance(node.operator, Sink) and node.operator.is_internal and node.operator.topic in read:
            return placed[node.name].middle
    return 0.0


def _wish(node: Node, nodes: dict[str, _Place]) -> float:
    """Where the middle of a node should be: below the middle of its parents."""
    parents = [nodes[parent].middle for parent in node.parents if parent in nodes]
    return sum(parents) / len(parents) if parents else 0.0


def _topics_of(topology: Topology, node: Node) -> Iterable[str]:
    """Topics that a node reads or writes, as they are called in the cluster."""
    operator = node.operator
    if isinstance(operator, Source):
        names = (operator.pattern.pattern,) if operator.pattern is not None else operator.topics
    elif isinstance(operator, Sink):
        names = (operator.topic if operator.topic is not None else "(chosen by a function)",)
    else:
        return ()
    return (topology.decorate(name) for name in names) if operator.is_internal else names


def _topic_rows(topology: Topology, stages: dict[int, int]) -> dict[str, int]:
    """The row of each topic: above the stage that reads it, otherwise below the stage that writes it."""
    rows: dict[str, int] = {}
    for kind, below in ((Source, 0), (Sink, 1)):
        for sub_topology in topology.sub_topologies:
            for node in sub_topology.nodes:
                if isinstance(node.operator, kind):
                    for topic in _topics_of(topology, node):
                        rows.setdefault(topic, stages[sub_topology.number] + below)
    return rows


def _place_topics(topology: Topology, row: list[_Place], boxes: list[_Box], y: float) -> None:
    """Put each topic of a row above or below the first node that uses it."""
    placed = {name: place for box in boxes for name, place in box.nodes.items()}
    wish: dict[str, float] = {}
    for node in topology.nodes.values():
        for topic in _topics_of(topology, node):
            wish.setdefault(topic, placed[node.name].middle)
    x = 10.0
    for place in sorted(row, key=lambda each: wish[each.label]):
        place.x, place.y = max(x, wish[place.label] - place.width / 2), y + 8
        x = place.x + place.width + _GAP


def _edges(topology: Topology, boxes: list[_Box], topics: dict[str, _Place], right: float) -> Iterator[str]:
    for sub_topology, box in zip(topology.sub_topologies, boxes, strict=True):
        for node in sub_topology.nodes:
            place = box.nodes[node.name]
            for topic in _topics_of(topology, node):
                if isinstance(node.operator, Source):
                    yield _arrow(topics[topic], place)
                elif topics[topic].y > place.y:
                    yield _arrow(place, topics[topic])
                else:
                    yield _back(place, topics[topic], right)
            for child in node.children:
                yield _arrow(place, box.nodes[child])
            for name in node.stores:
                yield _line(place, box.stores[name])


def _arrow(source: _Place, target: _Place) -> str:
    x, y, to_x, to_y = source.middle, source.y + _HEIGHT, target.middle, target.y
    bend = (to_y - y) / 2
    curve = f"M{x:.1f} {y:.1f}C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path d="{curve}" marker-end="url(#to)"/>'


def _back(source: _Place, target: _Place, right: float) -> str:
    """An edge to an earlier stage: from the right of its source, along the margin, to the right of its target."""
    y, to_y = source.y + _HEIGHT / 2, target.y + _HEIGHT / 2
    way = f"M{source.x + source.width:.1f} {y:.1f}H{right:.1f}V{to_y:.1f}H{target.x + target.width:.1f}"
    return f'<path d="{way}" marker-end="url(#to)"/>'


def _line(node: _Place, store: _Place) -> str:
    x, y = (node.x + node.width, node.y + _HEIGHT / 2) if store.x > node.x else (node.x, node.y + _HEIGHT / 2)
    to_x = store.x if store.x > node.x else store.x + store.width
    return f'<path class="uses" d="M{x:.1f} {y:.1f}L{to_x:.1f} {store.y + _HEIGHT / 2:.1f}"/>'
