"""The network of a simulation: who listens where, which links are cut or slow, how long bytes travel.

Connections are made as asyncio makes them, between protocols; ``transports`` moves their bytes. Latencies and pieces
come from the seed. Only the simulated loop calls ``listen`` and ``connect``; tests cut, slow, heal and kill.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from barnabas.testing.hosts import Host, Hosts
from barnabas.testing.transports import SimulatedTransport

if TYPE_CHECKING:
    from barnabas.testing.loop import SimulatedLoop

FIRST_SERVER_PORT: Final = 20_000
FIRST_CLIENT_PORT: Final = 40_000
PORT_MAX: Final = 65_535
EVERYWHERE: Final = frozenset({None, "", "0.0.0.0", "::"})  # noqa: S104  # names, not sockets
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
LOCAL_LATENCY_NS: Final = (5_000, 50_000)
LATENCY_NS: Final = (100_000, 1_000_000)
SPIKE_NS: Final = (5_000_000, 50_000_000)
SPIKE_ONE_IN: Final = 200

ProtocolFactory = Callable[[], asyncio.BaseProtocol]


class SimulatedSocket:
    """What is left of a socket when there is none: its name."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address


class SimulatedServer(asyncio.AbstractServer):
    def __init__(
        self, network: Network, loop: SimulatedLoop, factory: ProtocolFactory, addresses: list[tuple[str, int]]
    ) -> None:
        self.factory = factory
        self.host: Host = network.hosts.current()
        self.context = contextvars.copy_context()
        self._network = network
        self._loop = loop
        self._addresses = addresses
        self._closed: asyncio.Future[None] = loop.create_future()

    @property
    def sockets(self) -> tuple[SimulatedSocket, ...]:
        return tuple(SimulatedSocket(address) for address in self._addresses) if self.is_serving() else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return not self._closed.done()

    async def start_serving(self) -> None:
        """It does from the beginning."""

    async def serve_forever(self) -> None:
        try:
            await self.wait_closed()
        finally:
            self.close()

    def close(self) -> None:
        if self.is_serving():
            self._network.forget(self, self._addresses)
            self._closed.set_result(None)

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class Network:
    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self.hosts = Hosts()
        self.chunk_bytes_max: int | None = None  # a fault: bytes come in pieces of at most this size
        self.random = random
        self._loop = loop
        self._servers: dict[tuple[str, int], SimulatedServer] = {}
        self._connections: dict[int, tuple[SimulatedTransport, SimulatedTransport]] = {}
        self._cuts: dict[tuple[str, str], list[asyncio.Future[None]]] = {}
        self._delays_ns: dict[tuple[str, str], int] = {}  # of slow links
        self._next_server_port = FIRST_SERVER_PORT
        self._next_client_port = FIRST_CLIENT_PORT

    # What asyncio's loops do.

    def listen(self, factory: ProtocolFactory, host: Any, port: int, **options: Any) -> SimulatedServer:
        _refuse(options, allowed={"backlog", "reuse_address", "reuse_port", "start_serving", "family", "flags"})
        names = host if isinstance(host, Sequence) and not isinstance(host, str) else [host]
        addresses = [(self._here(name), port or self._free_port(self._here(name))) for name in names]
        for address in addresses:
            if address in self._servers:
                raise OSError(98, f"{address[0]}:{address[1]} is in use")
        server = SimulatedServer(self, self._loop, factory, addresses)
        self._servers.update(dict.fromkeys(addresses, server))
        return server

    async def connect(
        self, factory: ProtocolFactory, host: Any, port: int, **options: Any
    ) -> tuple[SimulatedTransport, asyncio.BaseProtocol]:
        local = options.pop("local_addr", None)
        _refuse(options, allowed={"family", "happy_eyeballs_delay", "interleave", "flags", "proto"})
        source, target = (local[0] if local else self._here(None)), self._here(host)
        await self._travel(source, target)
        server = self._servers.get((target, port))
        if server is None or not server.host.is_alive:
            await self._travel(target, source)
            raise ConnectionRefusedError(111, f"nobody listens at {target}:{port}")
        number = self._loop.next_number()
        near, far = (source, self._client_port()), (target, port)
        client = SimulatedTransport(self._loop, self, number, contextvars.copy_context(), (near, far))
        accepted = SimulatedTransport(self._loop, self, number, server.context, (far, near))
        client.peer, accepted.peer = accepted, client
        self._connections[number] = (client, accepted)
        self._loop.trace("connect", number, f"{near} {far}".encode())
        # The server's side begins now, the client hears of it later; both in their own contexts.
        self._loop.call_soon(accepted.begin, server.factory, context=server.context)
        try:
            await self._travel(target, source)
            client.begin(factory)
        finally:
            if not client.has_begun:  # the caller gave up, or its protocol failed
                client.abort()
        return client, client.get_protocol()

    # What tests do.

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Bytes from a to b (and back) wait until the link is healed, as they do while TCP tries again."""
        self._cuts.setdefault((a, b), [])
        if not one_way:
            self._cuts.setdefault((b, a), [])

    def slow(self, a: str, b: str, *, delay_ms: int, one_way: bool = False) -> None:
        """Bytes from a to b (and back) travel up to this much longer, each piece by its own, until it is healed.

        They arrive in order within a connection, but not across connections: what is asked later over another link, or
        after the link was healed, may be there first.
        """
        for link in ((a, b),) if one_way else ((a, b), (b, a)):
            self._delays_ns[link] = delay_ms * 1_000_000

    def heal(self, a: str, b: str) -> None:
        for link in ((a, b), (b, a)):
            self._delays_ns.pop(link, None)
            for waiter in self._cuts.pop(link, []):
                if not waiter.done():
                    waiter.set_result(None)
        for client, accepted in list(self._connections.values()):
            client.retry()
            accepted.retry()

    def heal_all(self) -> None:
        for a, b in [*self._cuts, *self._delays_ns]:
            self.heal(a, b)

    def isolate(self, name: str, others: Sequence[str]) -> None:
        for other in others:
            if other != name:
                self.cut(name, other)

    def reset(self, a: str, b: str) -> None:
        """Every connection between two hosts breaks, on both sides."""
        for client, accepted in list(self._connections.values()):
            if {client.host_name, accepted.host_name} == {a, b}:
                client.lose(ConnectionResetError(104, "the connection was reset"))
                accepted.lose(ConnectionResetError(104, "the connection was reset"))

    def kill(self, name: str) -> None:
        """The machine is gone: what ran there stops where it stood, and the others see their connections break."""
        self.hosts.kill(name)
        for address, server in list(self._servers.items()):
            if not server.host.is_alive or address[0] == name:
                del self._servers[address]
        for transports in list(self._connections.values()):
            for transport in transports:
                if transport.host_name == name:
                    transport.vanish()

    def pause(self, name: str) -> None:
        """What runs on this host stops, as a process does on SIGSTOP; its timers and bytes wait for it."""
        self.hosts.pause(name)

    def resume(self, name: str) -> None:
        self.hosts.resume(name)
        self._loop.release_held()

    # What transports ask.

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    def latency_ns(self, source: str, target: str) -> int:
        if source == target:
            return self.random.randint(*LOCAL_LATENCY_NS)
        delay_ns = self._delays_ns.get((source, target), 0)
        if delay_ns:
            delay_ns = self.random.randint(delay_ns // 2, delay_ns)
        return delay_ns + self.random.randint(*(SPIKE_NS if self.random.randrange(SPIKE_ONE_IN) == 0 else LATENCY_NS))

    def piece_bytes(self, size_bytes: int) -> int:
        """How much of what is to be sent goes in the next piece: mostly all."""
        if self.chunk_bytes_max is not None:
            size_bytes = min(size_bytes, self.chunk_bytes_max)
        fate = self.random.randrange(8)
        if fate == 0:
            return min(size_bytes, self.random.randint(1, 8))
        return self.random.randint(1, size_bytes) if fate == 1 else size_bytes

    def forget(self, server: SimulatedServer, addresses: Sequence[tuple[str, int]]) -> None:
        for address in addresses:
            if self._servers.get(address) is server:
                del self._servers[address]

    def ended(self, number: int) -> None:
        self._connections.pop(number, None)

    async def _travel(self, source: str, target: str) -> None:
        while self.is_cut(source, target):
            healed = self._loop.create_future()
            self._cuts[source, target].append(healed)
            await healed
        await asyncio.sleep(self.latency_ns(source, target) / 1e9)

    def _here(self, name: str | None) -> str:
        """Loopback and every-interface names mean the host that the running code is on."""
        return self.hosts.current().name if name in EVERYWHERE or name in LOOPBACK else str(name)

    def _free_port(self, host: str) -> int:
        while (host, self._next_server_port) in self._servers:
            self._next_server_port += 1
        self._next_server_port += 1
        return self._next_server_port - 1

    def _client_port(self) -> int:
        self._next_client_port += 1
        if self._next_client_port > PORT_MAX:
            self._next_client_port = FIRST_CLIENT_PORT
        return self._next_client_port


def _refuse(options: dict[str, Any], *, allowed: set[str]) -> None:
    for name in sorted(options):
        if name not in allowed and options[name] is not None:
            raise NotImplementedError(f"the simulated network has no {name}")
