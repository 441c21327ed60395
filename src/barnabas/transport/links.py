"""The connections of this node to the other nodes of its cluster.

Replication, the quorum, forwarded requests and markers send through here, each on lanes of its own, so that a long poll
does not block other requests. The module that follows the metadata sets the address of each node; callers decide
whether to retry. ``lane.py`` has the connection itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.transport.channel import Channel, PeerGone
from barnabas.transport.lane import Lane, LaneOptions
from barnabas.transport.versions import ApiRanges
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.transport.session import Prove

REQUEST_TIMEOUT_MS: Final = 30_000
DIAL_TIMEOUT_MS: Final = 10_000
DIAL_PAUSE_MS_MIN: Final = 50  # Kafka's reconnect.backoff.ms
DIAL_PAUSE_MS_MAX: Final = 1000


class Links:
    def __init__(
        self,
        *,
        client_id: str,
        chance: Callable[[int], int],
        tls: SSLContext | None = None,
        prove: Prove | None = None,
    ) -> None:
        """``chance`` returns a number below its argument; ``prove`` returns the credentials for SASL."""
        self.tls = tls
        self.prove = prove
        self._chance = chance
        self._options = LaneOptions(
            client_id=client_id,
            setup_timeout_ms=DIAL_TIMEOUT_MS,
            setup_timeout_max_ms=DIAL_TIMEOUT_MS,
            handshake_timeout_ms=DIAL_TIMEOUT_MS,
            backoff_ms=DIAL_PAUSE_MS_MIN,
            backoff_max_ms=DIAL_PAUSE_MS_MAX,
            tls=lambda: self.tls,
            prove=prove,
        )
        self._addresses: dict[int, tuple[str, int]] = {}
        self._lanes: dict[tuple[int, str], Lane] = {}
        self._is_closed = False

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._addresses

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Set the address of a node; connections to another address are closed."""
        if self._addresses.get(node_id) != (host, port):
            self.forget(node_id)
            self._addresses[node_id] = (host, port)

    def forget(self, node_id: int) -> None:
        self._addresses.pop(node_id, None)
        for key in [key for key in self._lanes if key[0] == node_id]:
            self._lanes.pop(key).stop()

    async def send(
        self, node_id: int, request: Message, *, lane: str = "", timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Message:
        """Return the response, in the newest version that both nodes know.

        Raises PeerGone, TimeoutError, or ApiError if the other node does not know the API.
        """
        found = self._lanes.get((node_id, lane)) or self._lane(node_id, lane)
        return await found.send(request, timeout_ms=timeout_ms)

    async def dial(self, host: str, port: int) -> tuple[Channel, ApiRanges]:
        """Open a connection to any address; the caller closes it."""
        return await Lane(host, port, self._options, self._chance).connect()

    async def close(self) -> None:
        self._is_closed = True
        lanes = list(self._lanes.values())
        self._lanes.clear()
        for lane in lanes:
            lane.stop()
        await asyncio.gather(*(lane.wait_stopped() for lane in lanes))

    def _lane(self, node_id: int, name: str) -> Lane:
        address = self._addresses.get(node_id)
        if address is None or self._is_closed:
            raise PeerGone(f"there is no way to node {node_id}")
        lane = self._lanes[node_id, name] = Lane(*address, self._options, self._chance)
        return lane
