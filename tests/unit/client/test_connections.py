"""One lane to one broker, against a peer on loopback that answers by a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from socket import SO_RCVBUF, SO_SNDBUF, SOL_SOCKET

import pytest

from barnabas.client.cluster.connections import Connection
from barnabas.client.errors import TimedOut
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError, Malformed
from barnabas.testing.loop import simulate
from barnabas.transport.channel import Channel, PeerGone, Unreachable
from barnabas.wire.frame import RequestHeader, decode_request_header, encode_response
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

Answer = Callable[[RequestHeader], Awaitable[tuple[Message, int] | None]]

SPOKEN = ApiVersionsResponse(
    api_keys=[
        ApiVersionsResponse.ApiVersion(api_key=12, min_version=0, max_version=3),
        ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2),
    ]
)


@asynccontextmanager
async def peer(answer: Answer, *, port: int = 0) -> AsyncIterator[int]:
    """Answers each frame with a message and its version, or closes if the script has none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, _ = decode_request_header(await reader.readexactly(size))
                said = await answer(header)
                if said is None:
                    break
                for part in encode_response(*said, correlation_id=header.correlation_id):
                    writer.write(part)  # type: ignore[arg-type]
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield port or server.sockets[0].getsockname()[1]
    finally:
        server.close()


def connection(port: int, **settings: int) -> Connection:
    return Connection("127.0.0.1", port, settings=Settings(**settings), chance=lambda limit: 0)  # type: ignore[arg-type]


async def polite(header: RequestHeader) -> tuple[Message, int]:
    if header.api_key == 18:
        return (SPOKEN, header.api_version) if header.api_version <= 2 else (_refusal(), 0)
    return HeartbeatResponse(error_code=header.api_version), header.api_version


def _refusal() -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=35, api_keys=[SPOKEN.api_keys[1]])


def test_versions_are_agreed_on_even_with_a_broker_that_knows_fewer() -> None:
    async def test() -> None:
        async with peer(polite) as port:
            lane = connection(port)
            answer = await lane.call(HeartbeatRequest(), HeartbeatResponse)
            assert answer.error_code == 3  # the highest version that both know
            await lane.close()

    asyncio.run(test())


def test_nobody_speaks_before_the_versions_are_agreed_on() -> None:
    async def test() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()
        seen: list[int] = []

        async def slow(header: RequestHeader) -> tuple[Message, int]:
            seen.append(header.api_key)
            asked.set()
            await go_on.wait()
            return await polite(header)

        async with peer(slow) as port:
            lane = connection(port)
            first = asyncio.ensure_future(lane.call(HeartbeatRequest(), HeartbeatResponse))
            await asked.wait()
            second = asyncio.ensure_future(lane.call(HeartbeatRequest(), HeartbeatResponse))
            await asyncio.sleep(0)
            go_on.set()
            assert [(await call).error_code for call in (first, second)] == [3, 3]
            assert seen == [18, 18, 12, 12]  # one dialled for both
            await lane.close()

    asyncio.run(test())


def test_an_api_that_the_broker_lacks_fails_with_a_sentence() -> None:
    async def test() -> None:
        async with peer(polite) as port:
            lane = connection(port)
            with pytest.raises(ApiError, match="METADATA"):
                await lane.call(MetadataRequest(), MetadataResponse)
            await lane.close()

    asyncio.run(test())


def test_a_broker_that_does_not_answer_in_time_is_dropped_and_dialled_again() -> None:
    async def test() -> None:
        calls, the_end = 0, asyncio.Event()

        async def forgetful(header: RequestHeader) -> tuple[Message, int] | None:
            nonlocal calls
            calls += header.api_key == 12
            if header.api_key == 12 and calls == 1:
                await the_end.wait()
                return None
            return await polite(header)

        async with peer(forgetful) as port:
            lane = connection(port)
            with pytest.raises(TimedOut) as caught:
                await lane.call(HeartbeatRequest(), HeartbeatResponse, timeout_ms=200)
            assert caught.value.retriable
            assert not lane.is_open
            assert (await lane.call(HeartbeatRequest(), HeartbeatResponse)).error_code == 3
            the_end.set()
            await lane.close()

    asyncio.run(test())


@pytest.mark.parametrize("patience_s", [0.5, 2.0])  # shorter than request.timeout.ms, and as long
def test_a_connection_without_responses_is_closed_though_every_caller_stops_waiting(patience_s: float) -> None:
    """As after the loss of a machine, or of a firewall's state: nothing arrives, not even the end of the connection."""

    async def scene() -> None:
        dialled, frozen = 0, True

        async def answer(header: RequestHeader) -> tuple[Message, int] | None:
            nonlocal dialled
            dialled += header.api_key == 18 and header.api_version <= 2
            if header.api_key == 12 and frozen:
                await asyncio.sleep(60)
                return None
            return await polite(header)

        async with peer(answer, port=9092) as port:
            lane = connection(port, request_timeout_ms=2_000)
            ended_at = asyncio.get_running_loop().time() + 3
            while asyncio.get_running_loop().time() < ended_at:
                with suppress(TimeoutError, TimedOut, PeerGone):
                    async with asyncio.timeout(patience_s):
                        await lane.call(HeartbeatRequest(), HeartbeatResponse)
            assert dialled == 2
            frozen = False
            await asyncio.sleep(3)
            async with asyncio.timeout(patience_s):
                assert (await lane.call(HeartbeatRequest(), HeartbeatResponse)).error_code == 3
            await lane.close()
            await asyncio.sleep(120)  # the other ends notice

    simulate(scene, time_s_max=300)


def test_a_connection_with_responses_is_kept_though_a_caller_stops_waiting() -> None:
    async def scene() -> None:
        dialled = 0

        async def answer(header: RequestHeader) -> tuple[Message, int]:
            nonlocal dialled
            dialled += header.api_key == 18 and header.api_version <= 2
            if header.api_key == 12:
                await asyncio.sleep(0.3)
            return await polite(header)

        async with peer(answer, port=9092) as port:
            lane = connection(port, request_timeout_ms=2_000)
            for _ in range(20):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await lane.call(HeartbeatRequest(), HeartbeatResponse)
                await asyncio.sleep(0.2)
            assert dialled == 1
            await lane.close()
            await asyncio.sleep(5)

    simulate(scene, time_s_max=300)


def test_a_broker_that_hangs_up_is_dialled_again() -> None:
    async def test() -> None:
        calls = 0

        async def rude(header: RequestHeader) -> tuple[Message, int] | None:
            nonlocal calls
            calls += header.api_key == 12
            return None if calls == 1 and header.api_key == 12 else await polite(header)

        async with peer(rude) as port:
            lane = connection(port)
            with pytest.raises(PeerGone):
                await lane.call(HeartbeatRequest(), HeartbeatResponse)
            assert (await lane.call(HeartbeatRequest(), HeartbeatResponse)).error_code == 3
            await lane.close()

    asyncio.run(test())


def test_a_peer_that_is_no_broker_is_found_out() -> None:
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            lane = connection(server.sockets[0].getsockname()[1])
            with pytest.raises(Malformed):
                await lane.call(HeartbeatRequest(), HeartbeatResponse)
            await lane.close()

    asyncio.run(test())


def test_a_broker_that_asks_for_quiet_gets_it() -> None:
    async def test() -> None:
        async def strict(header: RequestHeader) -> tuple[Message, int]:
            message, version = await polite(header)
            if isinstance(message, HeartbeatResponse):
                message.throttle_time_ms = 30
            return message, version

        async with peer(strict) as port:
            lane = connection(port)
            loop = asyncio.get_running_loop()
            await lane.call(HeartbeatRequest(), HeartbeatResponse)
            answered_at = loop.time()
            await lane.call(HeartbeatRequest(), HeartbeatResponse)
            assert loop.time() - answered_at >= 0.025
            await lane.close()

    asyncio.run(test())


def test_those_who_wait_for_a_dial_hear_of_the_closing() -> None:
    async def test() -> None:
        the_end = asyncio.Event()

        async def silent(header: RequestHeader) -> None:
            await the_end.wait()

        async with peer(silent) as port:
            lane = connection(port)
            waiting = asyncio.ensure_future(lane.call(HeartbeatRequest(), HeartbeatResponse))
            await asyncio.sleep(0)
            await lane.close()
            with pytest.raises(PeerGone):
                await waiting
            the_end.set()

    asyncio.run(test())


def test_dialling_again_waits_a_little_longer_each_time() -> None:
    async def test() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        lane = connection(port, reconnect_backoff_ms=10, reconnect_backoff_max_ms=40)
        loop = asyncio.get_running_loop()
        pauses = []
        for _ in range(4):
            before = loop.time()
            with pytest.raises(Unreachable):
                await lane.open()
            pauses.append(loop.time() - before)
        assert pauses[1] >= 0.007  # 10 ms, less a fifth by chance
        assert pauses[3] >= 0.030
        await lane.close()

    asyncio.run(test())


async def closed_by_itself(lane: Connection) -> None:
    async with asyncio.timeout(10):
        while lane.is_open:
            await asyncio.sleep(0.005)


def test_an_idle_connection_is_closed_and_dialled_again_when_it_is_needed() -> None:
    async def test() -> None:
        seen: list[int] = []

        async def counting(header: RequestHeader) -> tuple[Message, int]:
            seen.append(header.api_key)
            return await polite(header)

        async with peer(counting) as port:
            lane = connection(port, connections_max_idle_ms=30)
            for _ in range(2):
                assert (await lane.call(HeartbeatRequest(), HeartbeatResponse)).error_code == 3
                await closed_by_itself(lane)
            assert seen == [18, 18, 12] * 2
            await lane.close()

    asyncio.run(test())


@pytest.mark.parametrize("limit_ms", [0, 10])
def test_a_connection_that_owes_an_answer_is_not_idle(limit_ms: int) -> None:
    async def test() -> None:
        async def slow(header: RequestHeader) -> tuple[Message, int]:
            if header.api_key == 12:
                await asyncio.sleep(0.2)
            return await polite(header)

        async with peer(slow) as port:
            lane = connection(port, connections_max_idle_ms=limit_ms)
            assert (await lane.call(HeartbeatRequest(), HeartbeatResponse)).error_code == 3
            await closed_by_itself(lane)
            await lane.close()

    asyncio.run(test())


@pytest.mark.parametrize("limit_ms", [-1, 540_000])
def test_a_connection_may_be_idle_for_as_long_as_is_allowed(limit_ms: int) -> None:
    async def test() -> None:
        async with peer(polite) as port:
            lane = connection(port, connections_max_idle_ms=limit_ms)
            await lane.call(HeartbeatRequest(), HeartbeatResponse)
            await asyncio.sleep(0.05)
            assert lane.is_open
            await lane.close()

    asyncio.run(test())


def test_the_sockets_buffers_have_the_sizes_that_were_asked_for() -> None:
    async def sizes(**settings: int) -> tuple[int, int]:
        async with peer(polite) as port:
            lane = connection(port, **settings)
            channel = await lane.open()
            assert channel.socket is not None
            found = [channel.socket.getsockopt(SOL_SOCKET, option) for option in (SO_SNDBUF, SO_RCVBUF)]
            await lane.close()
            return found[0], found[1]

    small = asyncio.run(sizes(send_buffer_bytes=8_192, receive_buffer_bytes=16_384))
    large = asyncio.run(sizes(send_buffer_bytes=65_536, receive_buffer_bytes=131_072))
    assert all(8 * one == other for one, other in zip(small, large, strict=True))  # Linux says twice what it was told


def test_a_broker_that_cannot_be_dialled_gets_more_time_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Channel, "connect", never)

    async def test() -> None:
        lane = connection(
            1,
            socket_connection_setup_timeout_ms=10,
            socket_connection_setup_timeout_max_ms=40,
            reconnect_backoff_ms=0,
            reconnect_backoff_max_ms=0,
        )
        loop = asyncio.get_running_loop()
        patience = []
        for _ in range(4):
            before = loop.time()
            with pytest.raises(Unreachable):
                await lane.open()
            patience.append(loop.time() - before)
        assert patience[0] >= 0.007  # less a fifth by chance
        assert min(patience[2:]) >= 0.031
        await lane.close()

    asyncio.run(test())
