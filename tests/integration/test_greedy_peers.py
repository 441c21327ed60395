"""Peers that are greedy, slow, silent or too many: each harms itself, and nobody else notices.

Every test ends with a good client on the same broker that is served at once.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from hostile_frames import QUICK_SECONDS_MAX, VERSIONS_FRAME, anonymous_kib, frame_of
from talk import Raw, Talk, address_of, batch, fetch_request

from barnabas.testing import Broker, BrokerProcess
from barnabas.wire.messages.metadata import MetadataRequest

IDLE_CONNECTIONS = 2000
BYTES_PER_IDLE_CONNECTION_MAX = 16 * 1024

pytestmark = pytest.mark.usefixtures("others_are_undisturbed")


def test_a_thousand_requests_without_reading(shared_broker: Broker, talk: Talk, name: str) -> None:
    """What a peer does not read is not produced either: its requests wait in its own buffers."""
    talk.create(name)
    for _ in range(4):
        talk.produce(name, batch(b"x" * 200_000))
    request = frame_of(fetch_request(name), 12)
    before = anonymous_kib()
    with Raw(shared_broker.bootstrap_servers) as greedy:
        greedy.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):
                greedy.send(request)
        with Talk(shared_broker.bootstrap_servers) as good:
            assert good.ask(MetadataRequest(topics=[])).brokers
        grown = anonymous_kib() - before
        assert grown < 64 * 1024, f"the answers that nobody reads take {grown} KiB"


def test_a_thousand_pipelined_requests_are_answered_in_order(raw: Raw) -> None:
    frames = b"".join(frame_of(MetadataRequest(topics=[]), 9, correlation_id=number) for number in range(1000))
    sender = threading.Thread(target=raw.send, args=(frames,))
    sender.start()
    answered = [struct.unpack(">i", raw.receive_frame()[:4])[0] for _ in range(1000)]
    sender.join()
    assert answered == list(range(1000))


def test_a_slow_reader_does_not_slow_the_others(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name)
    for _ in range(8):
        talk.produce(name, batch(b"x" * 900_000))
    with Raw(shared_broker.bootstrap_servers) as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
        slow.send(frame_of(fetch_request(name, max_bytes=8 << 20, partition_max_bytes=8 << 20), 12))
        slow.socket.recv(100)
        waits = []
        for number in range(50):
            started = time.monotonic()
            assert talk.produce(name, batch(b"%d" % number)).error_code == 0
            waits.append(time.monotonic() - started)
        assert sorted(waits)[len(waits) // 2] < 0.1
        slow.socket.settimeout(20)
        received = 100
        while received < 7_000_000:
            piece = slow.socket.recv(1 << 20)
            assert piece
            received += len(piece)


def test_a_reader_that_vanishes_leaves_nothing_behind(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name)
    for _ in range(4):
        talk.produce(name, batch(b"x" * 900_000))
    for _ in range(20):
        with Raw(shared_broker.bootstrap_servers) as raw:
            raw.send(frame_of(fetch_request(name, max_bytes=4 << 20, partition_max_bytes=4 << 20), 12))
            raw.socket.recv(1000)
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    waiting = frame_of(fetch_request(name, 4, max_wait_ms=60_000, min_bytes=1), 12)
    for _ in range(20):
        with Raw(shared_broker.bootstrap_servers) as raw:
            raw.send(waiting)
    deadline = time.monotonic() + QUICK_SECONDS_MAX
    partition = shared_broker.node.services.replicas.leader(name, 0)
    while len(partition.readers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(partition.readers) == 0, "long polls of peers that are gone"


def test_two_thousand_idle_connections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = IDLE_CONNECTIONS + 500
    if hard < needed:
        pytest.skip(f"this system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        with BrokerProcess(tmp_path) as broker, contextlib.ExitStack() as stack:
            assert broker.process is not None
            address = address_of(broker.bootstrap_servers)
            stack.enter_context(Talk(broker.bootstrap_servers)).ask(MetadataRequest(topics=[]))
            before = anonymous_kib(broker.process.pid)
            for _ in range(IDLE_CONNECTIONS):
                connection = stack.enter_context(socket.create_connection(address))
                connection.sendall(VERSIONS_FRAME)
                assert connection.recv(10)
            each = (anonymous_kib(broker.process.pid) - before) * 1024 // IDLE_CONNECTIONS
            with Talk(broker.bootstrap_servers) as good:
                assert good.ask(MetadataRequest(topics=[])).brokers
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with capsys.disabled():
        print(f"\n{IDLE_CONNECTIONS} idle connections: {each} bytes of the broker's memory each")
    assert each < BYTES_PER_IDLE_CONNECTION_MAX


def test_more_connections_than_allowed_are_turned_away() -> None:
    with Broker(settings={"max.connections": "3"}) as broker:
        with contextlib.ExitStack() as stack:
            kept = [stack.enter_context(Raw(broker.bootstrap_servers)) for _ in range(3)]
            for raw in kept:
                raw.send(VERSIONS_FRAME)
                raw.receive_frame()
            with Raw(broker.bootstrap_servers) as one_too_many:
                assert one_too_many.is_closed()
            kept[0].send(VERSIONS_FRAME)
            assert kept[0].receive_frame()
        deadline = time.monotonic() + QUICK_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionError), Raw(broker.bootstrap_servers) as again:
                again.send(VERSIONS_FRAME)
                assert again.receive_frame()
                return
        pytest.fail("the places of those who left stay taken")


def test_a_produce_to_countless_partitions_is_refused_without_an_answer_of_its_size() -> None:
    from barnabas.broker.handlers.produce import PARTITIONS_MAX
    from barnabas.testing import Broker

    partition = bytes(4) + b"\x00\x00"  # index, null records, no tags
    count = PARTITIONS_MAX + 1
    size = (count + 1).to_bytes(3, "little")
    varint = bytes([size[0] & 0x7F | 0x80, (count + 1) >> 7 & 0x7F | 0x80, (count + 1) >> 14])
    body = b"\x00\xff\xff" + bytes(4) + b"\x02\x02t" + varint + partition * count + b"\x00\x00"
    header = b"\x00\x00\x00\x09" + bytes(4) + b"\xff\xff" + b"\x00"
    frame = len(header + body).to_bytes(4, "big") + header + body
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(frame)
            assert connection.recv(1) == b""
