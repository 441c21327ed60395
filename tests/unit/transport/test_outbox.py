"""What leaves a connection over real sockets: large slices past the transport, all else through it, in one order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
import uvloop

from barnabas.transport.outbox import NO_SOCKET, TURN_BYTES_MAX, Outbox, Part
from barnabas.world import page_cache
from barnabas.world.disk import CHUNK_BYTES_MAX, File, FileSlice
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock
from barnabas.world.real_disk import RealDisk
from barnabas.world.real_file import RealFile

CONTENT = random.Random(7).randbytes(6 * 1024 * 1024)
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[None, None, None]], None]:
    def on_the_loop(story: Coroutine[None, None, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(story, 30))

    return on_the_loop


@pytest.fixture
def file(tmp_path: Path) -> Iterator[RealFile]:
    file = RealDisk().open(str(tmp_path / "log"), create=True)
    assert isinstance(file, RealFile)
    file.append(CONTENT)
    yield file
    file.close()


class Sender(asyncio.Protocol):
    """Sends what it was made with as soon as somebody connects, and hangs up after it."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.outbox = Outbox(self.transport, self.transport.close)
        self.outbox.put(self._parts)
        if self.outbox.flush():
            self.transport.close()

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self.outbox.close()


@asynccontextmanager
async def reading(parts: list[Part]) -> AsyncIterator[tuple[Sender, asyncio.StreamReader]]:
    sender = Sender(parts)
    server = await asyncio.get_running_loop().create_server(lambda: sender, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield sender, reader
    finally:
        writer.close()
        server.close()
        await server.wait_closed()


def mixed(file: File) -> tuple[list[Part], bytes]:
    """Buffers and slices of all sizes in turn, and what they are to a reader."""
    parts: list[Part] = []
    expected = b""
    for number, size in enumerate((1_048_576, 700_001, 100, 3 * CHUNK_BYTES_MAX, 130_000, 2_000_000)):
        parts += [b"%d:" % number, FileSlice(file, number * 5, size)]
        expected += b"%d:" % number + CONTENT[number * 5 : number * 5 + size]
    return [*parts, b"the end"], expected + b"the end"


def count_sent(file: RealFile, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """What the file said each time it was asked to send a piece of itself."""
    sent: list[int | None] = []
    send = RealFile.send

    def counted(self: RealFile, socket: int, position: int, size_bytes: int) -> int | None:
        sent.append(send(self, socket, position, size_bytes))
        return sent[-1]

    monkeypatch.setattr(RealFile, "send", counted)
    return sent


def test_slices_and_buffers_arrive_in_order(
    run: Callable[..., None], file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = count_sent(file, monkeypatch)
    parts, expected = mixed(file)

    async def story() -> None:
        async with reading(parts) as (_, reader):
            assert await reader.read(-1) == expected

    run(story())
    assert sum(size or 0 for size in sent) > len(expected) / 2, "most of it went past the transport"


def test_a_reader_that_stalls_holds_little(run: Callable[..., None], file: RealFile) -> None:
    parts, expected = mixed(file)
    parts, expected = parts * 4, expected * 4

    async def story() -> None:
        async with reading(parts) as (sender, reader):
            while not sender.outbox._is_paused:
                await asyncio.sleep(0)
            await asyncio.sleep(0.05)
            assert sender.transport.get_write_buffer_size() <= CHUNK_BYTES_MAX
            assert not sender.outbox.is_idle
            assert await reader.read(-1) == expected

    run(story())


@pytest.mark.parametrize("is_real", [True, False], ids=["past-the-transport", "through-it"])
def test_others_get_their_turn_while_a_long_answer_leaves(
    run: Callable[..., None], file: RealFile, is_real: bool
) -> None:
    source: File = file
    if not is_real:
        source = MemoryDisk(RealClock()).open("/log", create=True)
        source.append(CONTENT)

    async def story() -> None:
        whole: list[Part] = [FileSlice(source, 0, len(CONTENT))]
        async with reading(whole) as (sender, reader):
            loop = asyncio.get_running_loop()
            left: list[int] = []

            def look() -> None:
                if not sender.outbox.is_idle:
                    left.append(sum(part.size_bytes for part in sender.outbox._parts if isinstance(part, FileSlice)))
                    loop.call_soon(look)

            look()
            assert await reader.read() == CONTENT
            assert left[0] > len(CONTENT) // 2  # some turns have passed since the first
            # A turn ends with the piece that reaches the limit; a socket may have taken a part of a piece before.
            assert max(before - after for before, after in pairwise(left)) < TURN_BYTES_MAX + CHUNK_BYTES_MAX

    run(story())


def test_what_is_not_cached_is_loaded(
    run: Callable[..., None], file: RealFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk whose pages come and go: every third look finds nothing, and some find a part."""
    looks = iter(range(1_000_000))
    view = RealFile.view

    def forgetful(self: RealFile, position: int, size_bytes: int) -> memoryview | None:
        look = next(looks)
        return None if look % 3 == 0 else view(self, position, size_bytes // (1 + look % 2))

    monkeypatch.setattr(RealFile, "view", forgetful)
    monkeypatch.setattr(page_cache, "is_present", lambda descriptor, position: next(looks) % 4 > 0)
    parts, expected = mixed(file)

    async def story() -> None:
        async with reading(parts) as (_, reader):
            assert await reader.read(-1) == expected

    run(story())


def test_a_file_that_is_cut_ends_the_connection(run: Callable[..., None], file: RealFile) -> None:
    file.truncate(1_000_000)

    async def story() -> None:
        async with reading([b"head", FileSlice(file, 0, 2_000_000), b"tail"]) as (_, reader):
            try:
                received = await reader.read(-1)
            except ConnectionResetError:
                received = b""
            assert not received.endswith(b"tail")
            assert len(received) <= 4 + 1_000_000

    run(story())


@pytest.mark.parametrize("is_real", [True, False])
def test_a_file_that_was_closed_ends_the_connection(run: Callable[..., None], tmp_path: Path, is_real: bool) -> None:
    disk = RealDisk() if is_real else MemoryDisk(RealClock())
    file = disk.open(str(tmp_path / "closed") if is_real else "closed", create=True)
    file.append(CONTENT)
    file.close()

    async def story() -> None:
        async with reading([FileSlice(file, 0, 2_000_000)]) as (_, reader):
            with suppress(ConnectionResetError):
                assert await reader.read(-1) == b""

    run(story())


def test_a_file_in_memory_goes_through_the_transport(run: Callable[..., None]) -> None:
    file = MemoryDisk(RealClock()).open("log", create=True)
    file.append(CONTENT)
    parts, expected = mixed(file)

    async def story() -> None:
        async with reading(parts) as (_, reader):
            assert await reader.read(-1) == expected

    run(story())


def test_nothing_goes_past_tls() -> None:
    class Encrypted(asyncio.Transport):
        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            pass

    transport = Encrypted({"sslcontext": object(), "socket": object()})
    assert Outbox(transport, lambda: None)._socket == NO_SOCKET
