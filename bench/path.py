"""The path of a produce request in microseconds, part by part, in one process without a socket.

``python -m bench path`` prints, for one record of 100 bytes, a batch of 16 KB and one of 1 MB: the whole way from frame
to encoded answer, each part called on its own, and the way from received bytes to written ones, for one request at a
time and for many that arrive together. Figures are the best of several rounds of CPU time, so that a busy machine
distorts them little. The budget beside them, for the smallest, is what each part took in the prototype by which the
design was chosen; it had no rights, quotas, replication or general messages, so two to three times as much was planned.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Callable
from mmap import mmap
from typing import Any, Final

from barnabas.broker.controller.requests import create_topics
from barnabas.broker.node.node import Node
from barnabas.broker.requests.dispatch import Dispatcher
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.storage.validate import validate
from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Connection
from barnabas.wire.frame import decode_request_header, encode_request, encode_response
from barnabas.wire.message import decode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records import encode_batch
from barnabas.world.chunks import PAGE_BYTES
from barnabas.world.disk import CHUNK_BYTES_MAX
from barnabas.world.real import new_event_loop, real_world

VERSION: Final = 9
ZERO: Final = bytes(8)
ROUNDS: Final = 40
TOGETHER_MAX: Final = 64
COPIED_BYTES: Final = 16 * 1024 * 1024
LARGE_ALLOCATION_STARTS: Final = 16  # bytes into a page
BUDGET: Final = {
    "request header": 0.08,
    "request body": 0.25,
    "validate (CRC, structure)": 0.43,
    "partition.append": 1.7,
    "  the write alone": 1.5,
    "answer": 0.35,
    "  of many received together": 7.0,
}
SIZES: Final = {"1 × 100 B": (1, 100, 200), "16 KB": (16, 1000, 100), "1 MB": (1000, 1000, 4)}  # with calls a round


def best(call: Callable[[], Any], count: int) -> float:
    """Microseconds of CPU per call, in the best of the rounds."""
    found = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(count):
            call()
        found = min(found, (time.process_time_ns() - start) / count / 1000)
    return found


def frame_of(records: int, size: int) -> bytearray:
    now_ms = time.time_ns() // 1_000_000
    batch = encode_batch([(now_ms, None, b"x" * size, ()) for _ in range(records)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name="path", partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)]
            )
        ],
    )
    parts = encode_request(request, VERSION, correlation_id=1, client_id="bench")
    return bytearray(b"".join(bytes(part) for part in parts))[4:]  # type: ignore[arg-type]


class _NoListener:
    """Lets everybody in."""

    def admit(self, connection: Connection) -> bool:
        return True

    def forget(self, connection: Connection) -> None:
        """Nobody was counted."""


class _NoTransport(asyncio.Transport):
    """Takes everything, and sends it nowhere."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It is never full."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: object) -> None:
        self.written = data

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    def resume_reading(self) -> None:
        """It is the bench that says when."""


def connection_of(dispatcher: Dispatcher, node: Node) -> Connection:
    connection = Connection(
        _NoListener(),
        dispatcher.serve,
        FramePool(),
        listener_name="PLAINTEXT",
        frame_bytes_max=2**31 - 1,
        now_ns=node.world.clock.monotonic_ns,
    )
    connection.connection_made(_NoTransport())
    return connection


def received(connection: Connection, frame: memoryview, count: int) -> Callable[[], None]:
    """What happens when so many requests have come in: in one piece if they fit into what is received at once."""
    data = memoryview((len(frame).to_bytes(4, "big") + bytes(frame)) * count)

    def receive() -> None:
        position = 0
        while position < len(data):
            buffer = connection.get_buffer(-1)
            size = min(len(buffer), len(data) - position)
            buffer[:size] = data[position : position + size]
            connection.buffer_updated(size)
            position += size
            if connection._is_resuming:  # it left the rest for the loop's next turn, of which there is none here
                connection._resume_turn()

    return receive


def measure(node: Node, records: int, size: int, count: int) -> dict[str, float]:
    dispatcher = Dispatcher(node.services)
    connection = connection_of(dispatcher, node)
    frame = memoryview(frame_of(records, size))
    partition = node.services.replicas.leader("path", 0)
    _, position = decode_request_header(frame)
    message = decode(ProduceRequest, VERSION, frame, position)
    batch = message.topic_data[0].partition_data[0].records
    assert batch is not None
    together = min(TOGETHER_MAX, count)
    receive_one, receive_many = received(connection, frame, 1), received(connection, frame, together)
    now_ms = node.world.clock.wall_ms()
    validated = validate(batch, partition.rules, now_ms=now_ms)
    batch[:8] = ZERO  # type: ignore[index]
    answer: Any = dispatcher.serve(connection, frame)
    assert isinstance(answer, list)
    response = ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                name="path", partition_responses=[ProduceResponse.PartitionProduceResponse(index=0)]
            )
        ]
    )
    log = partition.log

    def fresh() -> memoryview:
        """The batch as a client sends it: an append has put an offset into it."""
        batch[:8] = ZERO  # type: ignore[index]
        return batch  # type: ignore[return-value]

    def whole() -> Any:
        fresh()
        return dispatcher.serve(connection, frame)

    parts = {
        "request header": lambda: decode_request_header(frame),
        "request body": lambda: decode(ProduceRequest, VERSION, frame, position),
        "validate (CRC, structure)": lambda: validate(fresh(), partition.rules, now_ms=now_ms),
        "partition.append": lambda: partition.append(validated, is_waiting_for_all=True, now_ms=now_ms),
        "  log.append_as_leader": lambda: log.append_as_leader(
            validated, leader_epoch=partition.leader_epoch, now_ms=now_ms
        ),
        "  the write alone": lambda: log.segments.active.opened().append(batch),
        "answer": lambda: encode_response(response, VERSION, correlation_id=1),
        "whole, frame to answer": whole,
        "whole, received to written": receive_one,
    }
    found = {name: best(call, count) for name, call in parts.items()}
    found["  of many received together"] = best(receive_many, count // together) / together
    return found


def print_pauses() -> None:
    """What the collector of cycles would stop everybody for, if it looked at all of a broker that does nothing yet."""
    spent_ms = best(gc.collect, 1) / 1000
    print(f"{'a full collection':32}{spent_ms:12.2f} ms of CPU, over {len(gc.get_objects()):,} objects")


def print_copies(directory: str) -> None:
    """What it costs to read from the page cache, by how far the memory lies above the file's bytes within a page."""
    path = f"{directory}/copied"
    with open(path, "wb") as file:
        file.write(bytes(COPIED_BYTES))
    descriptor = os.open(path, os.O_RDONLY)
    memory = mmap(-1, CHUNK_BYTES_MAX + PAGE_BYTES)
    for above in (0, LARGE_ALLOCATION_STARTS, PAGE_BYTES // 2):
        view = memoryview(memory)[above : above + CHUNK_BYTES_MAX]

        def read(view: memoryview = view) -> None:
            for position in range(0, COPIED_BYTES, CHUNK_BYTES_MAX):
                os.preadv(descriptor, (view,), position)

        seconds = best(read, 1) / 1e6
        print(f"{f'reading, {above} bytes above':32}{seconds / COPIED_BYTES * 1e9:12.3f} CPU s/GB")
        view.release()
    memory.close()
    os.close(descriptor)


async def run() -> None:
    with tempfile.TemporaryDirectory() as directory:
        settings = {**DEVELOPMENT, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": directory}
        world = real_world()
        node = Node(world, BrokerSettings.of(settings))
        await node.start()
        topic = CreateTopicsRequest.CreatableTopic(name="path", num_partitions=1, replication_factor=1)
        await create_topics(node.services, CreateTopicsRequest(topics=[topic]))
        columns = {name: measure(node, *shape) for name, shape in SIZES.items()}
        print(f"{'µs of CPU per produce request':32}{'budget':>12}" + "".join(f"{name:>12}" for name in columns))
        for part in next(iter(columns.values())):
            figures = "".join(f"{column[part]:12.2f}" for column in columns.values())
            print(f"{part:32}{BUDGET.get(part, ''):>12}{figures}")
        print_pauses()
        print_copies(directory)
        # The write alone was done behind the log's back: a clean stop would vouch for what is not there.
        await node.stop()
        await world.workers.close()


def print_path() -> None:
    loop = new_event_loop()
    try:
        loop.run_until_complete(asyncio.wait_for(run(), 300))
    finally:
        loop.close()
