"""Where the other brokers are: keeps the links to them in step with what the metadata says.

Only addresses are kept here. Who talks to which broker, and when to try again, is decided by replication, by the
coordinators and by whoever forwards a request.
"""

from __future__ import annotations

from barnabas.metadata.image import ClusterImage
from barnabas.transport.links import Links


class Neighbours:
    def __init__(self, links: Links, *, broker_id: int, listener_name: str) -> None:
        self._links = links
        self._broker_id = broker_id
        self._listener_name = listener_name
        self._known: dict[int, tuple[str, int]] = {}

    def on_image(self, image: ClusterImage) -> None:
        """Fenced brokers stay known: one that was merely slow is back before its address could change."""
        present: dict[int, tuple[str, int]] = {}
        for node in image.brokers.values():
            end_point = node.end_point(self._listener_name)
            if node.id != self._broker_id and end_point is not None:
                present[node.id] = (end_point.host, end_point.port)
        for node_id in sorted(self._known.keys() - present.keys()):
            self._links.forget(node_id)
        for node_id, address in sorted(present.items()):
            self._links.learn(node_id, *address)
        self._known = present
