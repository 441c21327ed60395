"""The simulated network: protocols, back-pressure and faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.testing.loop import SimulatedLoop, simulate


def loop() -> SimulatedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, SimulatedLoop)
    return running


class Echo(asyncio.BufferedProtocol):
    """Answers with what it got, through a buffer too small for it."""

    def __init__(self) -> None:
        self.buffer = bytearray(1000)
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, size_hint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, size_bytes: int) -> None:
        self.transport.write(bytes(self.buffer[:size_bytes]))

    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)


class Collector(asyncio.Protocol):
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.arrived = asyncio.Event()
        self.paused = 0
        self.has_ended = False
        self.lost: asyncio.Future[Exception | None] = loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self.arrived.set()

    def eof_received(self) -> bool:
        self.has_ended = True
        return False

    def pause_writing(self) -> None:
        self.paused += 1

    def resume_writing(self) -> None:
        self.paused -= 1

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(error)

    @property
    def received(self) -> bytes:
        return b"".join(self.pieces)

    async def wait_for(self, size_bytes: int) -> bytes:
        while len(self.received) < size_bytes:
            self.arrived.clear()
            await self.arrived.wait()
        return self.received


async def serve(factory: Callable[[], asyncio.BaseProtocol] = Echo, host: str | None = None) -> int:
    server = await loop().create_server(factory, host, 0)
    return server.sockets[0].getsockname()[1]


async def connect(port: int, host: str = "127.0.0.1") -> Collector:
    _, protocol = await loop().create_connection(Collector, host, port)
    assert isinstance(protocol, Collector)
    return protocol


async def talk() -> tuple[str, int]:
    """A little traffic; answers the trace so far and the number of pieces."""
    port = await serve()
    clients = [await connect(port) for _ in range(3)]
    message = bytes(range(256)) * 300
    for client in clients:
        client.transport.write(message)
    for client in clients:
        assert await client.wait_for(len(message)) == message
        client.transport.close()
    for client in clients:
        assert await client.lost is None
    return loop().trace_hash(), sum(len(client.pieces) for client in clients)


def test_one_seed_is_one_run_and_another_seed_another() -> None:
    first, second, other = (simulate(talk, seed=seed) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_bytes_arrive_in_pieces() -> None:
    async def main() -> int:
        loop().network.chunk_bytes_max = 10
        port = await serve()
        client = await connect(port)
        client.transport.writelines([b"x" * 500, memoryview(b"y" * 500)])
        assert await client.wait_for(1000) == b"x" * 500 + b"y" * 500
        return len(client.pieces)

    assert simulate(main) >= 100


def test_both_ends_know_their_names() -> None:
    async def main() -> None:
        made: list[Echo] = []

        def factory() -> Echo:
            made.append(Echo())
            return made[-1]

        port = await serve(factory)
        client = await connect(port)
        assert client.transport.get_extra_info("peername") == ("127.0.0.1", port)
        assert made[0].transport.get_extra_info("peername") == client.transport.get_extra_info("sockname")
        assert client.transport.get_extra_info("socket") is None

    simulate(main)


def test_a_stalled_reader_stops_the_writer() -> None:
    async def main() -> None:
        readers: list[Collector] = []

        def factory() -> Collector:
            readers.append(Collector())
            return readers[-1]

        port = await serve(factory)
        writer = await connect(port)
        await asyncio.sleep(1)
        readers[0].transport.pause_reading()
        writer.transport.write(b"z" * 1_000_000)
        assert writer.paused == 1
        await asyncio.sleep(10)
        assert writer.paused == 1
        assert writer.transport.get_write_buffer_size() > 800_000
        assert readers[0].received == b""
        readers[0].transport.resume_reading()
        await readers[0].wait_for(1_000_000)
        assert writer.paused == 0
        writer.transport.close()
        assert await readers[0].lost is None
        assert readers[0].has_ended

    simulate(main)


def test_a_close_lets_what_was_written_arrive() -> None:
    async def main() -> None:
        readers: list[Collector] = []

        def factory() -> Collector:
            readers.append(Collector())
            return readers[-1]

        port = await serve(factory)
        writer = await connect(port)
        writer.transport.write(b"a" * 200_000)
        writer.transport.close()
        assert writer.transport.is_closing()
        writer.transport.write(b"ignored")
        assert await writer.lost is None
        assert await readers[0].lost is None
        assert readers[0].received == b"a" * 200_000

    simulate(main)


def test_an_abort_is_a_reset_at_the_other_end() -> None:
    async def main() -> None:
        made: list[Echo] = []

        def factory() -> Echo:
            made.append(Echo())
            return made[-1]

        port = await serve(factory)
        client = await connect(port)
        client.transport.abort()
        assert await client.lost is None
        await asyncio.sleep(1)
        assert isinstance(made[0].lost[0], ConnectionResetError)
        assert len(made[0].lost) == 1

    simulate(main)


def test_streams_work_too() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.readline())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def main() -> bytes:
        server = await asyncio.start_server(answer, "127.0.0.1", 9000)
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", 9000)
            writer.write(b"you\n")
            result = await reader.read()
            writer.close()
            await writer.wait_closed()
        return result

    assert simulate(main) == b"hello you\n"


def test_nobody_listening_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(ConnectionRefusedError):
            await connect(1)
        server = await loop().create_server(Echo, None, 9092)
        with pytest.raises(OSError, match="in use"):
            await loop().create_server(Echo, None, 9092)
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await connect(9092)
        with pytest.raises(NotImplementedError, match="ssl"):
            await loop().create_server(Echo, None, 9093, ssl=object())

    simulate(main)


def test_a_protocol_that_fails_loses_its_connection_and_the_run() -> None:
    class Broken(Echo):
        def buffer_updated(self, size_bytes: int) -> None:
            raise ValueError("broken")

    async def main() -> None:
        client = await connect(await serve(Broken))
        client.transport.write(b"x")
        assert isinstance(await client.lost, ConnectionResetError)

    with pytest.raises(ExceptionGroup):
        simulate(main)


async def on(host: str, port: int) -> Collector:
    return await loop().start_on("client", connect(port, host))


def test_a_cut_link_holds_bytes_back_until_it_is_healed() -> None:
    async def main() -> None:
        port = await loop().start_on("server", serve())
        client = await on("server", port)
        network = loop().network
        network.cut("client", "server")
        client.transport.write(b"late")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(on("server", port), 60)
        assert client.received == b""
        network.heal("client", "server")
        assert await client.wait_for(4) == b"late"
        await on("server", port)
        network.cut("server", "client", one_way=True)
        client.transport.write(b"heard")
        await asyncio.sleep(60)
        assert client.received == b"late"
        network.heal_all()
        assert await client.wait_for(9) == b"lateheard"

    simulate(main)


def test_a_slow_link_delays_bytes_until_it_is_healed() -> None:
    async def main() -> None:
        port = await loop().start_on("server", serve())
        client = await on("server", port)
        network = loop().network
        network.slow("client", "server", delay_ms=4000, one_way=True)
        start = loop().time()
        client.transport.write(b"a")
        await client.wait_for(1)
        assert 2 <= loop().time() - start < 5
        network.slow("client", "server", delay_ms=4000)
        start = loop().time()
        client.transport.write(b"b")
        await client.wait_for(2)
        assert 4 <= loop().time() - start < 9
        network.heal_all()
        start = loop().time()
        client.transport.write(b"c")
        assert await client.wait_for(3) == b"abc"
        assert loop().time() - start < 1

    simulate(main)


def test_a_killed_host_breaks_its_connections_and_can_come_back() -> None:
    async def main() -> None:
        port = await loop().start_on("server", serve())
        client = await on("server", port)
        loop().network.kill("server")
        assert isinstance(await client.lost, ConnectionResetError)
        with pytest.raises(ConnectionRefusedError):
            await on("server", port)
        port = await loop().start_on("server", serve())
        again = await on("server", port)
        again.transport.write(b"back")
        assert await again.wait_for(4) == b"back"

    simulate(main)


def test_a_reset_breaks_both_ends() -> None:
    async def main() -> None:
        port = await loop().start_on("server", serve())
        client = await on("server", port)
        loop().network.reset("client", "server")
        assert isinstance(await client.lost, ConnectionResetError)

    simulate(main)


def test_a_caller_who_gives_up_leaves_nothing_behind() -> None:
    async def main() -> None:
        made: list[Echo] = []

        def factory() -> Echo:
            made.append(Echo())
            return made[-1]

        port = await loop().start_on("server", serve(factory))
        loop().network.cut("server", "client", one_way=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(on("server", port), 5)
        await asyncio.sleep(1)
        assert len(made) == 1
        assert len(made[0].lost) == 1

    simulate(main)
