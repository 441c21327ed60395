"""How the quorum reaches its other members: a seam, since sockets belong to the transport and to whoever wires a node.

``learn`` comes before the first ``send`` to a node and again when it moves. Nodes that are only known by address, to be
asked who leads, have ids below -1.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.raft.voters import Endpoint
from barnabas.transport.channel import PeerGone
from barnabas.wire.message import Message

__all__ = ["NoPeers", "PeerGone", "RaftPeers"]


class RaftPeers(Protocol):
    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        """Where a node is from now on."""

    async def send(self, node_id: int, request: Message, *, timeout_ms: int) -> Message:
        """The answer, in the newest version that both speak. PeerGone, OSError or TimeoutError if there is none.

        After the time-out the connection is given up: it may be dead without an end, and a new one may do.
        """


class NoPeers:
    """For a quorum of one."""

    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        pass

    async def send(self, node_id: int, request: Message, *, timeout_ms: int) -> Message:
        raise PeerGone(f"there is no way to node {node_id}")
