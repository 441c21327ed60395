"""A connection answers in order, waits where it must, bounds its memory and lets nobody else suffer."""

from __future__ import annotations

import asyncio
from struct import pack
from typing import Any

import pytest
from connection_bench import Bench, echo, frame, run

from barnabas.model.errors import Malformed
from barnabas.transport.buffers import FIRST_FRAME_BYTES, FRESH_FRAME_BYTES, SCRATCH_BYTES, FramePool
from barnabas.transport.connection import ANSWERS_WAITING_MAX, Answer, Connection
from barnabas.transport.listener import Limits
from barnabas.world.disk import FileSlice

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_of_every_size_are_answered_in_order(seed: int) -> None:
    sizes = [1, 10, SCRATCH_BYTES - 4, SCRATCH_BYTES, 3, SCRATCH_BYTES + 1, FIRST_FRAME_BYTES * 3 + 7, 5]
    payloads = [bytes([number + 1]) * size for number, size in enumerate(sizes)]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        for payload in payloads:
            client.transport.write(frame(payload))
        await client.until(lambda: len(client.frames()) == len(payloads))
        assert client.frames() == payloads

    run(echo, story, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_leave_in_the_order_of_the_requests_whatever_is_ready_first(seed: int) -> None:
    later: dict[bytes, asyncio.Future[Any]] = {}
    seen: list[bytes] = []

    def serve(_: Connection, request: memoryview) -> Answer:
        name = bytes(request)
        seen.append(name)
        if name.startswith(b"later"):
            later[name] = asyncio.get_running_loop().create_future()
            return later[name]
        return [frame(name)]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        for name in (b"later1", b"now1", b"later2", b"now2"):
            client.transport.write(frame(name))
        while len(seen) < 4:  # requests behind a deferred answer are worked on meanwhile
            await asyncio.sleep(0.01)
        later[b"later2"].set_result([frame(b"later2")])
        await asyncio.sleep(1)
        assert client.frames() == []
        later[b"later1"].set_result([frame(b"later1")])
        await client.until(lambda: len(client.frames()) == 4)
        assert client.frames() == [b"later1", b"now1", b"later2", b"now2"]

    run(serve, story, seed=seed)


def test_a_listener_that_closes_sees_a_client_off_when_the_answer_it_waits_for_is_out() -> None:
    later: list[asyncio.Future[Any]] = []

    def serve(_: Connection, request: memoryview) -> Answer:
        later.append(asyncio.get_running_loop().create_future())
        return later[-1]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        client.transport.write(frame(b"a") + frame(b"b"))
        while len(later) < 2:
            await asyncio.sleep(0.01)
        bench.listener.close()
        later[0].set_result([frame(b"first")])
        await asyncio.sleep(1)
        assert not client.is_lost
        later[1].set_result([frame(b"second")])
        await client.until(lambda: client.is_lost)
        assert client.frames() == [b"first", b"second"]

    run(serve, story)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [6, SCRATCH_BYTES * 2])
def test_a_coroutine_holds_up_its_connection_and_keeps_its_request(seed: int, size: int) -> None:
    active = 0

    def serve(_: Connection, request: memoryview) -> Answer:
        # What is smaller than the scratch area is copied by whoever serves it with a coroutine.
        held = request if len(request) > SCRATCH_BYTES else memoryview(bytes(request))

        async def work() -> list[Any]:
            nonlocal active
            active += 1
            assert active == 1, "two requests of one connection at once"
            before = bytes(held)
            await asyncio.sleep(1)
            active -= 1
            assert bytes(held) == before, "the memory of a request was used again too early"
            return [frame(bytes(held[:6]))]

        return work()

    async def story(bench: Bench) -> None:
        client = await bench.client()
        names = [b"work%02d" % number for number in range(5)]
        for name in names:
            client.transport.write(frame(name.ljust(size, b".")))
        await client.until(lambda: len(client.frames()) == len(names))
        assert client.frames() == names

    run(serve, story, seed=seed)


@pytest.mark.parametrize(
    "garbage",
    [pack(">i", -1), pack(">i", 0), pack(">i", 1001), pack(">i", 2**31 - 1) + b"x" * 100],
    ids=["negative", "zero", "over the limit", "huge"],
)
def test_a_frame_with_a_bad_length_closes_the_connection_and_no_other(garbage: bytes) -> None:
    async def story(bench: Bench) -> None:
        good, bad = await bench.client(), await bench.client()
        bad.transport.write(garbage)
        await bad.until(lambda: bad.is_lost)
        good.transport.write(frame(b"still here"))
        await good.until(lambda: good.frames() == [b"still here"])

    run(echo, story, limits=Limits(frame_bytes_max=1000))


def test_a_frame_that_never_comes_costs_what_was_sent() -> None:
    pool = FramePool()
    buffer = pool.take(100 * 1024 * 1024)
    assert len(buffer) == FRESH_FRAME_BYTES


def test_a_frame_that_came_whole_leaves_a_large_buffer_to_the_next() -> None:
    pool = FramePool()
    buffer = pool.take(FIRST_FRAME_BYTES)
    while len(buffer) < FIRST_FRAME_BYTES:
        buffer = pool.grown(buffer, size_bytes=FIRST_FRAME_BYTES)
    pool.give(buffer)
    assert pool.take(FIRST_FRAME_BYTES) is buffer
    pool.give(pool.take(3 * SCRATCH_BYTES))
    assert len(pool.take(100 * FIRST_FRAME_BYTES)) == FIRST_FRAME_BYTES


def test_a_request_that_cannot_be_understood_closes_the_connection() -> None:
    def serve(_: Connection, request: memoryview) -> Answer:
        raise Malformed("nonsense")

    async def story(bench: Bench) -> None:
        client = await bench.client()
        client.transport.write(frame(b"?"))
        await client.until(lambda: client.is_lost)

    run(serve, story)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slice_of_a_file_arrives_whole_and_in_its_place(seed: int) -> None:
    content = bytes(range(256)) * 4096  # a MiB

    async def story(bench: Bench) -> None:
        file = bench.world.disk.open("/slice", create=True)
        file.append(content)

        def serve(_: Connection, request: memoryview) -> Answer:
            return [pack(">i", len(content) + 2), b"<", FileSlice(file, 0, len(content)), b">"]

        bench.listener._serve = serve
        client = await bench.client()
        client.transport.write(frame(b"x") * 3)
        await client.until(lambda: len(client.frames()) == 3)
        assert client.frames() == [b"<" + content + b">"] * 3

    run(echo, story, seed=seed)


def test_a_peer_that_does_not_read_is_not_asked_for_more() -> None:
    served = 0

    def serve(_: Connection, request: memoryview) -> Answer:
        nonlocal served
        served += 1
        return [frame(b"." * 10_000)]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        client.transport.pause_reading()
        client.transport.write(frame(b"x") * 5000)
        await asyncio.sleep(60)
        assert served < 1000
        client.transport.resume_reading()
        await client.until(lambda: len(client.data) == 5000 * 10_004)

    run(serve, story)


def test_the_number_of_waiting_answers_is_bounded() -> None:
    waiting: list[asyncio.Future[Any]] = []

    def serve(_: Connection, request: memoryview) -> Answer:
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[-1]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        client.transport.write(frame(b"x") * (ANSWERS_WAITING_MAX + 500))
        await asyncio.sleep(60)
        assert len(waiting) == ANSWERS_WAITING_MAX
        client.transport.abort()
        await asyncio.sleep(60)
        assert all(future.cancelled() for future in waiting)

    run(serve, story)


def test_connections_beyond_the_limits_are_closed() -> None:
    async def story(bench: Bench) -> None:
        clients = [await bench.client() for _ in range(4)]
        await asyncio.sleep(1)
        assert [client.is_lost for client in clients] == [False, False, False, True]
        clients[0].transport.abort()
        await asyncio.sleep(1)
        newcomer = await bench.client()
        newcomer.transport.write(frame(b"hello"))
        await newcomer.until(lambda: newcomer.frames() == [b"hello"])

    run(echo, story, limits=Limits(connections_per_address_max=3))


def test_an_idle_connection_is_seen_off_and_a_busy_one_is_not() -> None:
    async def story(bench: Bench) -> None:
        idle, busy = await bench.client(), await bench.client()
        for number in range(30):
            busy.transport.write(frame(b"%d" % number))
            await asyncio.sleep(0.1)
        assert idle.is_lost
        assert not busy.is_lost

    run(echo, story, limits=Limits(idle_ms_max=1000))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_that_is_held_is_answered_at_once_and_heard_later(seed: int) -> None:
    heard: list[tuple[bytes, int]] = []
    benches: list[Bench] = []

    def serve(connection: Connection, request: memoryview) -> Answer:
        heard.append((bytes(request), benches[0].world.clock.monotonic_ms()))
        if bytes(request) == b"too much":
            connection.hold(benches[0].timers, 5000)
        return [frame(bytes(request))]

    async def story(bench: Bench) -> None:
        benches.append(bench)
        client, other = await bench.client(), await bench.client()
        client.transport.write(frame(b"too much") + frame(b"next") + frame(b"x" * (3 * SCRATCH_BYTES)))
        await client.until(lambda: client.frames() == [b"too much"])
        answered_ms = bench.world.clock.monotonic_ms()
        other.transport.write(frame(b"other"))
        await other.until(lambda: other.frames() == [b"other"])
        await client.until(lambda: len(client.frames()) == 3)
        times = dict(heard)
        assert answered_ms - times[b"too much"] < 1000
        assert times[b"other"] - times[b"too much"] < 1000
        assert times[b"next"] - times[b"too much"] >= 5000

    run(serve, story, seed=seed)


def test_a_client_that_goes_while_it_is_held_leaves_nothing_behind() -> None:
    benches: list[Bench] = []

    def serve(connection: Connection, request: memoryview) -> Answer:
        connection.hold(benches[0].timers, 1_000_000)
        return [frame(b"wait")]

    async def story(bench: Bench) -> None:
        benches.append(bench)
        client = await bench.client()
        client.transport.write(frame(b"?"))
        await client.until(lambda: bool(client.frames()))
        client.transport.abort()
        while bench.listener.connection_count:
            await asyncio.sleep(1)

    run(serve, story)


def test_whoever_comes_too_fast_waits_or_is_turned_away() -> None:
    async def story(bench: Bench) -> None:
        bench.listener.pace = lambda _: (3000, False)
        start_ms = bench.world.clock.monotonic_ms()
        late = await bench.client()
        late.transport.write(frame(b"hello"))
        await late.until(lambda: late.frames() == [b"hello"])
        assert bench.world.clock.monotonic_ms() - start_ms >= 3000
        bench.listener.pace = lambda _: (3000, True)
        start_ms = bench.world.clock.monotonic_ms()
        refused = await bench.client()
        refused.transport.write(frame(b"hello"))
        await refused.until(lambda: refused.is_lost)
        assert bench.world.clock.monotonic_ms() - start_ms >= 2900
        assert refused.frames() == []
        assert bench.listener.refused_count == 1

    run(echo, story)


class Watch:
    def __init__(self, told: list[str]) -> None:
        self._told = told

    def leaving(self) -> None:
        self._told.append("leaving")

    def left(self) -> bool:
        self._told.append("left")
        return True


def test_who_measures_a_request_hears_when_its_answer_is_out() -> None:
    told: list[str] = []
    connections: list[Connection] = []

    def serve(connection: Connection, request: memoryview) -> Answer:
        connections.append(connection)
        connection.timing = Watch(told)
        return [frame(bytes(request))]

    async def story(bench: Bench) -> None:
        client = await bench.client()
        client.transport.write(frame(b"a"))
        await client.until(lambda: client.frames() == [b"a"])
        assert told == ["leaving", "left"]
        assert connections[0].timing is None

    run(serve, story)
