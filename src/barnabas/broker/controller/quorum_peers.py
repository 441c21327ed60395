"""How this node's part in the quorum reaches the other members: over the links to their controller listeners.

Long polls for the log take a lane of their own, so a vote never waits behind one. What is said on the lanes is decided
in ``barnabas.raft``; the node builds one of these for the Raft driver. The answers of this node to the others come from
the handlers of the quorum's APIs.
"""

from __future__ import annotations

from typing import Final

from barnabas.raft.voters import Endpoint
from barnabas.transport.links import Links
from barnabas.wire.message import Message
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest

LOG_LANE: Final = "raft-log"
VOTE_LANE: Final = "raft"


class SocketPeers:
    """A ``RaftPeers`` on real connections."""

    def __init__(self, links: Links, *, listener_names: tuple[str, ...]) -> None:
        """``listener_names``: this node's controller listeners, the one it prefers first."""
        self._links = links
        self._listener_names = listener_names

    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        endpoint = self._best(endpoints)
        if endpoint is not None:
            self._links.learn(node_id, endpoint.host, endpoint.port)

    def _best(self, endpoints: tuple[Endpoint, ...]) -> Endpoint | None:
        """The one on a listener of a name that we have too, since the same is spoken there; else the first."""
        by_name = {endpoint.listener: endpoint for endpoint in reversed(endpoints)}
        for name in self._listener_names:
            if name in by_name:
                return by_name[name]
        return endpoints[0] if endpoints else None

    async def send(self, node_id: int, request: Message, *, timeout_ms: int) -> Message:
        lane = LOG_LANE if isinstance(request, FetchRequest | FetchSnapshotRequest) else VOTE_LANE
        return await self._links.send(node_id, request, lane=lane, timeout_ms=timeout_ms)
