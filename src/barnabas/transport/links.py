"""The connections of this node to the other nodes of its cluster: dialled when needed, dialled again after a pause.

Replication, the quorum, forwarded requests and markers all send through here, each on lanes of its own so that a long
poll holds nobody else up. Where a node is, is told by whoever follows the metadata; whether to ask again is decided by
whoever asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.model.errors import BarnabasError
from barnabas.transport.backoff import Backoff
from barnabas.transport.channel import FRAME_BYTES_MAX, Channel, PeerGone, Unreachable
from barnabas.transport.versions import ApiRanges, agree
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from ssl import SSLContext

REQUEST_TIMEOUT_MS: Final = 30_000
DIAL_TIMEOUT_MS: Final = 10_000
DIAL_PAUSE_MS_MIN: Final = 50  # Kafka's reconnect.backoff.ms
DIAL_PAUSE_MS_MAX: Final = 1000
IN_FLIGHT_MAX: Final = 256

SignIn = Callable[[Channel], Awaitable[None]]


class Links:
    def __init__(
        self,
        *,
        client_id: str,
        chance: Callable[[int], int],
        tls: SSLContext | None = None,
        sign_in: SignIn | None = None,
    ) -> None:
        """``chance`` gives a number below its argument: nodes must not dial in step."""
        self._client_id = client_id
        self._chance = chance
        self.tls = tls
        self._sign_in = sign_in
        self._addresses: dict[int, tuple[str, int]] = {}
        self._lanes: dict[tuple[int, str], _Lane] = {}
        self._is_closed = False

    def __contains__(self, node_id: int) -> bool:
        return node_id in self._addresses

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Where a node is from now on; connections to where it was are given up."""
        if self._addresses.get(node_id) != (host, port):
            self.forget(node_id)
            self._addresses[node_id] = (host, port)

    def forget(self, node_id: int) -> None:
        self._addresses.pop(node_id, None)
        for key in [key for key in self._lanes if key[0] == node_id]:
            self._lanes.pop(key).close()

    async def send(
        self, node_id: int, request: Message, *, lane: str = "", timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Message:
        """The answer, in the newest version that both speak. PeerGone, TimeoutError or ApiError if there is none."""
        address = self._addresses.get(node_id)
        if address is None or self._is_closed:
            raise PeerGone(f"there is no way to node {node_id}")
        found = self._lanes.get((node_id, lane))
        if found is None:
            found = self._lanes[node_id, lane] = _Lane(self, *address)
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                channel, ranges = await found.open()
                return await channel.send(request, ranges.highest_common(type(request)))
        except TimeoutError:
            # Nobody knows what the peer does with its answer, and all behind it would wait for that.
            found.drop()
            raise
        except asyncio.CancelledError:
            # Whoever asked has lost patience, perhaps in the very moment in which the time is up; that the connection
            # is dead is to be noticed all the same.
            found.drop_if_silent(deadline)
            raise

    async def close(self) -> None:
        self._is_closed = True
        lanes = list(self._lanes.values())
        self._lanes.clear()
        for lane in lanes:
            lane.close()
        await asyncio.gather(*(lane.closed() for lane in lanes))

    async def dial(self, host: str, port: int) -> tuple[Channel, ApiRanges]:
        try:
            async with asyncio.timeout(DIAL_TIMEOUT_MS / 1000):
                channel = await Channel.connect(
                    host,
                    port,
                    client_id=self._client_id,
                    frame_bytes_max=FRAME_BYTES_MAX,
                    in_flight_max=IN_FLIGHT_MAX,
                    ssl=self.tls,
                )
                try:
                    ranges = await agree(channel)
                    if self._sign_in is not None:
                        await self._sign_in(channel)
                except BaseException:
                    channel.abort()
                    raise
                return channel, ranges
        except TimeoutError:
            raise Unreachable(host, port, "no answer") from None

    def new_backoff(self) -> Backoff:
        return Backoff(DIAL_PAUSE_MS_MIN, DIAL_PAUSE_MS_MAX, self._chance)


class _Lane:
    """One connection to one node. All who wait for it share one attempt to dial."""

    def __init__(self, links: Links, host: str, port: int) -> None:
        self._links = links
        self._host = host
        self._port = port
        self._open: tuple[Channel, ApiRanges] | None = None
        self._dialling: asyncio.Task[tuple[Channel, ApiRanges]] | None = None
        self._backoff = links.new_backoff()
        self._not_before = 0.0  # on the loop's clock
        self._is_closed = False

    async def open(self) -> tuple[Channel, ApiRanges]:
        if self._open is not None and self._open[0].is_open:
            return self._open
        if self._is_closed:
            raise PeerGone(f"{self._host}:{self._port}: the connection was closed on this side")
        if self._dialling is None:
            loop = asyncio.get_running_loop()
            self._dialling = loop.create_task(self._dial(), name=f"dial:{self._host}:{self._port}")
            self._dialling.add_done_callback(self._on_dialled)
        dialling = self._dialling
        try:
            return await asyncio.shield(dialling)
        except asyncio.CancelledError:
            if not dialling.cancelled():
                raise
            raise PeerGone(f"{self._host}:{self._port}: the connection was closed on this side") from None

    async def _dial(self) -> tuple[Channel, ApiRanges]:
        loop = asyncio.get_running_loop()
        pause = self._not_before - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        try:
            self._open = await self._links.dial(self._host, self._port)
        except BarnabasError:
            self._not_before = loop.time() + self._backoff.next_ms() / 1000
            raise
        self._backoff.reset()
        return self._open

    def _on_dialled(self, task: asyncio.Task[tuple[Channel, ApiRanges]]) -> None:
        self._dialling = None
        if not task.cancelled():
            task.exception()  # those who wait have been told; if nobody waits, nobody needs to know

    def drop(self) -> None:
        """Give the connection up; the next request dials again."""
        if self._open is not None:
            self._open[0].abort()
            self._open = None

    def drop_if_silent(self, deadline: float) -> None:
        """Give the connection up at a time of the loop's, if by then it has brought no answer that is due now."""
        if self._open is None:
            return
        channel, oldest = self._open[0], self._open[0].oldest

        def look() -> None:
            if self._open is not None and self._open[0] is channel and channel.oldest == oldest:
                self.drop()

        if oldest is not None:
            asyncio.get_running_loop().call_at(deadline, look)

    def close(self) -> None:
        self._is_closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._open is not None:
            self._open[0].abort()

    async def closed(self) -> None:
        if self._dialling is not None:
            await asyncio.wait([self._dialling])
        if self._open is not None:
            await self._open[0].closed
