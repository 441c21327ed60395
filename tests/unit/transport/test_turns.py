"""Whoever sends much shares the loop: with real sockets, since what is read at once is the loop's own decision."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
import uvloop
from connection_bench import frame

from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import LONG_FRAME_BYTES_MIN, LONG_FRAMES_PER_TURN_MAX, Answer, Connection
from barnabas.transport.listener import Limits, Listener
from barnabas.world.real import RealClock
from barnabas.world.timers import Timers

SECONDS_MAX = 30.0


def send_all(port: int, request: bytes, count: int) -> None:
    with socket.create_connection(("127.0.0.1", port), SECONDS_MAX) as client:
        client.sendall(request * count)
        answers = b""
        while len(answers) < count * len(frame(b".")):
            answers += client.recv(1000)


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize(
    ("size", "count", "per_turn"),
    [(LONG_FRAME_BYTES_MIN, 20, LONG_FRAMES_PER_TURN_MAX), (16_000, 600, 5)],
    ids=["long", "short"],
)
def test_who_sends_much_leaves_the_rest_for_the_next_turn(
    new_loop: Callable[[], asyncio.AbstractEventLoop], size: int, count: int, per_turn: int
) -> None:
    turn = 0
    frames: Counter[int] = Counter()

    def serve(_: Connection, request: memoryview) -> Answer:
        frames[turn] += 1
        time.sleep(0.4 / count)  # meanwhile more of them arrive
        return [frame(b".")]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        clock = RealClock()
        timers = Timers(clock)
        listener = Listener("PLAINTEXT", serve, FramePool(), clock, timers, Limits())
        await listener.bind("127.0.0.1", 0)
        await listener.serve()
        sender = threading.Thread(target=send_all, args=(listener.port, frame(bytes(size)), count))
        sender.start()

        def next_turn() -> None:
            nonlocal turn
            turn += 1
            if sender.is_alive():
                loop.call_soon(next_turn)

        next_turn()
        while sender.is_alive():
            await asyncio.sleep(0.01)
        await listener.stop()
        timers.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(main(), SECONDS_MAX))
    assert frames.total() == count
    assert max(frames.values()) <= per_turn
