"""The short way of a produce answers, byte for byte, as the long way does, and leaves to it all that is unusual."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import pytest

from barnabas.broker.controller.requests import create_topics
from barnabas.broker.handlers import produce, produce_one
from barnabas.broker.node.node import Node
from barnabas.broker.requests.dispatch import Dispatcher
from barnabas.broker.requests.request import Request
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.model.ids import Uuid
from barnabas.testing.loop import simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.buffers import FramePool
from barnabas.transport.connection import Connection
from barnabas.wire.compression import Codec
from barnabas.wire.frame import decode_request_header, encode_request
from barnabas.wire.message import decode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.produce_frame import COMPILED
from barnabas.wire.records import encode_batch

NOW_MS = 1_767_225_600_000
REQUESTS = 64
CALLS_MAX = 13  # without those of the disk and the clock
SETTINGS = {**DEVELOPMENT, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": "/data"}


def with_node(story: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        node = Node(simulated_world(asyncio.get_running_loop(), 1), BrokerSettings.of(SETTINGS))  # type: ignore[arg-type]
        await node.start()
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
            for name in ("short", "lengthy"[:5])
        ]
        await create_topics(node.services, CreateTopicsRequest(topics=topics))
        await story(node)
        await node.stop()

    simulate(main, seed=1)


def frame_of(
    node: Node,
    topic: str,
    version: int,
    batch: bytes | bytearray,
    *,
    acks: int = -1,
    index: int = 0,
    client: str | None = "c",
) -> memoryview:
    known = node.services.image.topics.by_name.get(topic)
    topic_id = known.id if known is not None and version >= 13 else Uuid(bytes(16))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic if version < 13 else "",
                topic_id=topic_id,
                partition_data=[ProduceRequest.PartitionProduceData(index=index, records=batch)],
            )
        ],
    )
    parts = encode_request(request, version, correlation_id=77, client_id=client)
    return memoryview(bytearray(b"".join(bytes(part) for part in parts)))[4:]  # type: ignore[arg-type]


def long_way(node: Node, frame: memoryview) -> bytes:
    header, position = decode_request_header(frame)
    request = Request(node.services, None, header)  # type: ignore[arg-type]
    answer = produce.handle(request, decode(ProduceRequest, header.api_version, frame, position))
    assert isinstance(answer, ProduceResponse)
    return b"".join(bytes(part) for part in request.encode(answer))  # type: ignore[arg-type]


def topic_bytes(node: Node, topic: str, version: int) -> bytes:
    return node.services.image.topics.by_name[topic].id if version >= 13 else topic.encode()


@pytest.mark.parametrize("version", produce_one.VERSIONS)
@pytest.mark.parametrize("acks", [-1, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_both_ways_answer_alike(version: int, acks: int, codec: Codec) -> None:
    async def story(node: Node) -> None:
        for count in (1, 3, 200):
            batch = encode_batch([(NOW_MS, b"k", b"v" * 50, ())] * count, codec=codec)
            short = produce_one.attempt(node.services, frame_of(node, "short", version, batch, acks=acks, index=1))
            assert isinstance(short, list)
            long = long_way(node, frame_of(node, "lengt", version, batch, acks=acks, index=1))
            renamed = long.replace(topic_bytes(node, "lengt", version), topic_bytes(node, "short", version))
            assert b"".join(bytes(part) for part in short) == renamed  # type: ignore[arg-type]

    with_node(story)


def test_what_is_unusual_is_left_alone_and_nothing_is_written() -> None:
    async def story(node: Node) -> None:
        batch = encode_batch([(NOW_MS, b"k", b"v", ())])
        broken = bytearray(batch)
        broken[-1] ^= 1
        odd = {
            "acks=0": frame_of(node, "short", 9, batch, acks=0),
            "acks=7": frame_of(node, "short", 9, batch, acks=7),
            "an old version": frame_of(node, "short", 8, batch),
            "an unknown topic": frame_of(node, "other", 9, batch),
            "an unknown partition": frame_of(node, "short", 9, batch, index=9),
            "a bad checksum": frame_of(node, "short", 9, broken),
            "a transactional batch": frame_of(
                node,
                "short",
                9,
                encode_batch(
                    [(NOW_MS, b"k", b"v", ())], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True
                ),
            ),
            "two batches": frame_of(node, "short", 9, batch + batch),
            "no batch": frame_of(node, "short", 9, b""),
        }
        for name, frame in odd.items():
            assert produce_one.attempt(node.services, frame) is None, name
        whole = frame_of(node, "short", 9, batch)
        for size in range(len(whole)):
            assert produce_one.attempt(node.services, whole[:size]) is None, size
        assert node.services.replicas.leader("short", 0).log.end_offset == 0
        assert produce_one.attempt(node.services, frame_of(node, "short", 9, batch, client=None)) is not None

    with_node(story)


def test_an_endless_size_ends() -> None:
    async def story(node: Node) -> None:
        frame = bytearray(frame_of(node, "short", 9, encode_batch([(NOW_MS, b"k", b"v", ())])))
        size_at = frame.index(b"short") + 5 + 5
        endless = frame[:size_at] + b"\x80" * 1_000_000
        assert produce_one.attempt(node.services, memoryview(endless)) is None

    with_node(story)


class Anybody:
    """Lets everybody in, takes everything, counts nothing."""

    def admit(self, connection: Connection) -> bool:
        return True

    def forget(self, connection: Connection) -> None: ...


class Sink(asyncio.Transport):
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def write(self, data: object) -> None: ...


@pytest.mark.skipif(not COMPILED, reason="what is interpreted makes calls of its own")
def test_a_small_produce_takes_few_calls() -> None:
    """Every call costs a small request a hundredth of its time; what everybody adds one of, nobody finds afterwards."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and not any(room in code.co_filename for room in ("barnabas/world/", "barnabas/testing/")):
            calls[code.co_qualname] += 1

    async def story(node: Node) -> None:
        serve = Dispatcher(node.services).serve
        connection = Connection(
            Anybody(), serve, FramePool(), listener_name="PLAINTEXT", frame_bytes_max=1 << 20, now_ns=int
        )
        connection.connection_made(Sink())
        request = frame_of(node, "short", 9, encode_batch([(NOW_MS, b"k", b"v" * 100, ())]))
        data = (len(request).to_bytes(4, "big") + bytes(request)) * REQUESTS
        for _ in range(2):  # the first time something may be imported or made
            calls.clear()
            connection.get_buffer(-1)[: len(data)] = data
            sys.setprofile(count)
            try:
                connection.buffer_updated(len(data))
            finally:
                sys.setprofile(None)
        assert node.services.replicas.leader("short", 0).log.end_offset == 2 * REQUESTS

    with_node(story)
    assert calls.total() <= CALLS_MAX * REQUESTS, calls.most_common(40)
