"""The client's channel against a peer that is a script of bytes: order, limits, lies and loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.transport.channel import SCRATCH_BYTES, Channel, PeerGone, Unreachable
from barnabas.wire.frame import decode_request_header, encode_response
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Wire(asyncio.Transport):
    """Keeps what the channel writes, and brings what the peer says."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_aborted = False
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted


def opened(*, frame_bytes_max: int = 1 << 20, in_flight_max: int = 8) -> tuple[Channel, Wire]:
    channel = Channel("peer", 9092, client_id="test", frame_bytes_max=frame_bytes_max, in_flight_max=in_flight_max)
    wire = Wire()
    channel.connection_made(wire)
    return channel, wire


def receive(channel: Channel, data: bytes, *, step: int = 1 << 30) -> None:
    """Deliver bytes as an event loop would: into the channel's own buffer, as much as it offers."""
    while data:
        buffer = channel.get_buffer(-1)
        size = min(len(buffer), len(data), step)
        assert size > 0
        buffer[:size] = data[:size]
        channel.buffer_updated(size)
        data = data[size:]


def answer(correlation_id: int, *, error_code: int = 0) -> bytes:
    parts = encode_response(HeartbeatResponse(error_code=error_code), 4, correlation_id=correlation_id)
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_answers_reach_their_requests_in_order() -> None:
    async def test() -> None:
        channel, wire = opened()
        first = channel.post(HeartbeatRequest(), 4)
        second = channel.post(HeartbeatRequest(), 4)
        header, _ = decode_request_header(bytes(wire.written[4:]))
        assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (12, 4, 0, "test")
        receive(channel, answer(0, error_code=1) + answer(1, error_code=2))
        assert [(await first).error_code, (await second).error_code] == [1, 2]
        assert channel.in_flight == 0

    run(test)


@pytest.mark.parametrize("step", [1, 3, 7])
def test_frames_may_arrive_in_any_pieces(step: int) -> None:
    async def test() -> None:
        channel, _ = opened()
        waiting = [channel.post(HeartbeatRequest(), 4) for _ in range(5)]
        receive(channel, b"".join(answer(index, error_code=index) for index in range(5)), step=step)
        assert [(await entry).error_code for entry in waiting] == [0, 1, 2, 3, 4]

    run(test)


@pytest.mark.parametrize("step", [1 << 30, 10_000])
def test_a_large_frame_keeps_its_own_memory(step: int) -> None:
    async def test() -> None:
        channel, _ = opened(frame_bytes_max=1 << 24)
        first = channel.post(FetchRequest(), 12)
        second = channel.post(HeartbeatRequest(), 4)
        records = bytes(range(256)) * 8192  # far above the scratch area, so the frame must grow several times
        part = FetchResponse.PartitionData(partition_index=0, records=records)
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[part])
        parts = encode_response(FetchResponse(responses=[topic]), 12, correlation_id=0)
        frame = b"".join(bytes(piece) for piece in parts)  # type: ignore[arg-type]
        assert len(frame) > 10 * SCRATCH_BYTES
        receive(channel, frame + answer(1, error_code=9), step=step)
        message = await first
        assert isinstance(message, FetchResponse)
        assert (await second).error_code == 9
        assert bytes(message.responses[0].partitions[0].records) == records  # type: ignore[arg-type]

    run(test)


@pytest.mark.parametrize("size", [0, -1, -(2**31), 101, 2**31 - 1])
def test_a_lie_about_a_frames_length_ends_the_connection(size: int) -> None:
    async def test() -> None:
        channel, wire = opened(frame_bytes_max=100)
        first = channel.post(HeartbeatRequest(), 4)
        second = channel.post(HeartbeatRequest(), 4)
        receive(channel, size.to_bytes(4, "big", signed=True))
        with pytest.raises(Malformed):
            await first
        with pytest.raises(PeerGone):
            await second
        assert wire.is_aborted
        assert not channel.is_open

    run(test)


def test_memory_follows_the_bytes_and_not_the_announcement() -> None:
    async def test() -> None:
        channel, _ = opened(frame_bytes_max=1 << 30)
        waiting = channel.post(HeartbeatRequest(), 4)
        receive(channel, (1 << 29).to_bytes(4, "big") + bytes(1000))
        assert len(channel.get_buffer(-1)) < 1 << 20
        channel.connection_lost(None)
        with pytest.raises(PeerGone):
            await waiting

    run(test)


def test_an_answer_to_another_request_ends_the_connection() -> None:
    async def test() -> None:
        channel, wire = opened()
        waiting = channel.post(HeartbeatRequest(), 4)
        receive(channel, answer(7))
        with pytest.raises(Malformed, match="7"):
            await waiting
        assert wire.is_aborted

    run(test)


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async def test() -> None:
        channel, wire = opened()
        receive(channel, answer(0))
        assert wire.is_aborted
        with pytest.raises(PeerGone):
            channel.post(HeartbeatRequest(), 4)

    run(test)


def test_nonsense_inside_a_frame_is_the_one_who_asked_told() -> None:
    async def test() -> None:
        channel, wire = opened()
        waiting = channel.post(FetchRequest(), 12)
        receive(channel, (20).to_bytes(4, "big") + bytes(4) + b"\xff" * 16)
        with pytest.raises(Malformed):
            await waiting
        assert wire.is_aborted

    run(test)


def test_a_lost_connection_is_told_to_everyone_who_waits() -> None:
    async def test() -> None:
        channel, _ = opened(in_flight_max=1)
        first = channel.post(HeartbeatRequest(), 4)
        queued = asyncio.ensure_future(channel.send(HeartbeatRequest(), 4))
        await asyncio.sleep(0)
        channel.connection_lost(ConnectionResetError("reset"))
        for waiting in (first, queued):
            with pytest.raises(PeerGone) as caught:
                await waiting
            assert caught.value.retriable
        assert channel.closed.done()

    run(test)


def test_senders_wait_for_room_and_go_on_in_their_order() -> None:
    async def test() -> None:
        channel, _ = opened(in_flight_max=2)
        sends = [asyncio.ensure_future(channel.send(HeartbeatRequest(), 4)) for _ in range(4)]
        await asyncio.sleep(0)
        assert channel.in_flight == 2
        receive(channel, answer(0, error_code=10))
        await asyncio.sleep(0)
        assert channel.in_flight == 2
        receive(channel, answer(1, error_code=11))
        await asyncio.sleep(0)
        receive(channel, answer(2, error_code=12) + answer(3, error_code=13))
        assert [message.error_code for message in await asyncio.gather(*sends)] == [10, 11, 12, 13]  # type: ignore[attr-defined]

    run(test)


def test_a_sender_that_gives_up_its_turn_passes_it_on() -> None:
    async def test() -> None:
        channel, _ = opened(in_flight_max=1)
        first = channel.post(HeartbeatRequest(), 4)
        quitter = asyncio.ensure_future(channel.send(HeartbeatRequest(), 4))
        patient = asyncio.ensure_future(channel.send(HeartbeatRequest(), 4))
        await asyncio.sleep(0)
        receive(channel, answer(0))
        quitter.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        receive(channel, answer(1, error_code=3))
        assert (await patient).error_code == 3  # type: ignore[attr-defined]
        assert (await first).error_code == 0  # type: ignore[attr-defined]
        assert quitter.cancelled()

    run(test)


def test_who_comes_when_there_is_room_again_does_not_overtake_those_who_wait() -> None:
    async def test() -> None:
        channel, wire = opened()
        channel.pause_writing()
        first = [asyncio.ensure_future(channel.send_silent(HeartbeatRequest(group_id=f"{i}"), 4)) for i in range(3)]
        await asyncio.sleep(0)
        channel.resume_writing()
        late = channel.send_silent(HeartbeatRequest(group_id="late"), 4)
        await late
        await asyncio.gather(*first)
        places = [wire.written.index(name) for name in (b"\x020", b"\x021", b"\x022", b"late")]
        assert places == sorted(places)

    run(test)


def test_while_a_channel_is_held_only_what_is_posted_leaves() -> None:
    async def test() -> None:
        channel, _ = opened()
        first = channel.post(HeartbeatRequest(), 4)
        channel.hold()
        waiting = [asyncio.ensure_future(channel.send(HeartbeatRequest(), 4)) for _ in range(3)]
        silence = asyncio.ensure_future(channel.wait_for_silence())
        await asyncio.sleep(0)
        assert not silence.done()
        receive(channel, answer(0))
        await silence
        assert (await first).error_code == 0  # type: ignore[attr-defined]
        posted = channel.post(HeartbeatRequest(), 4)
        receive(channel, answer(1, error_code=1))
        assert (await posted).error_code == 1  # type: ignore[attr-defined]
        assert channel.in_flight == 0
        channel.release()
        for _ in waiting:
            await asyncio.sleep(0)
        receive(channel, b"".join(answer(2 + index, error_code=2 + index) for index in range(3)))
        assert [message.error_code for message in await asyncio.gather(*waiting)] == [2, 3, 4]  # type: ignore[attr-defined]

    run(test)


def test_a_channel_that_is_released_until_a_time_is_held_from_then_on() -> None:
    async def test() -> None:
        channel, _ = opened()
        now = asyncio.get_running_loop().time()
        channel.release(until=now + 3600)
        assert channel.has_room
        channel.release(until=now)
        assert not channel.has_room

    run(test)


def test_who_waits_to_send_is_told_why_the_channel_was_given_up() -> None:
    async def test() -> None:
        channel, wire = opened()
        channel.hold()
        waiting = asyncio.ensure_future(channel.send(HeartbeatRequest(), 4))
        silence = channel.wait_for_silence()
        await asyncio.sleep(0)
        channel.abort(ApiError(errors.SASL_AUTHENTICATION_FAILED, "no longer"))
        with pytest.raises(ApiError, match="no longer"):
            await waiting
        await silence
        assert wire.is_aborted

    run(test)


def test_the_answer_of_a_caller_who_gave_up_is_thrown_away() -> None:
    async def test() -> None:
        channel, _ = opened()
        first = channel.post(HeartbeatRequest(), 4)
        second = channel.post(HeartbeatRequest(), 4)
        first.cancel()
        receive(channel, answer(0) + answer(1, error_code=5))
        assert (await second).error_code == 5  # type: ignore[attr-defined]
        assert channel.is_open

    run(test)


def test_a_peer_that_stops_reading_holds_senders_back() -> None:
    async def test() -> None:
        channel, wire = opened()
        channel.pause_writing()
        sending = asyncio.ensure_future(channel.send_silent(HeartbeatRequest(), 4))
        await asyncio.sleep(0)
        assert not wire.written
        channel.resume_writing()
        await sending
        assert wire.written
        assert channel.in_flight == 0

    run(test)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def test() -> None:
        channel, _ = opened()
        waiting = channel.post(ApiVersionsRequest(), 4)
        entry = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)
        parts = encode_response(ApiVersionsResponse(error_code=35, api_keys=[entry]), 0, correlation_id=0)
        receive(channel, b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        message = await waiting
        assert isinstance(message, ApiVersionsResponse)
        assert (message.error_code, message.api_keys) == (35, [entry])

    run(test)


def test_closing_lets_written_bytes_leave_and_tells_those_who_wait() -> None:
    async def test() -> None:
        channel, wire = opened()
        waiting = channel.post(HeartbeatRequest(), 4)
        channel.close()
        assert (wire.is_closed, wire.is_aborted) == (True, False)
        with pytest.raises(PeerGone):
            await waiting

    run(test)


def test_where_nothing_listens_the_reason_is_said(unused_tcp_port: int) -> None:
    async def test() -> None:
        with pytest.raises(Unreachable, match="nothing is listening"):
            await Channel.connect("127.0.0.1", unused_tcp_port, client_id=None)

    run(test)


@pytest.fixture
def unused_tcp_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
