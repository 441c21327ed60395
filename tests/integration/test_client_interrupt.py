"""Ctrl-C ends whatever a client waits for, at once and for good: blocking or not, with a broker, a mute one, or none.

Every script says when it is about to wait; then it gets the signal, and has to be gone soon, however patient its
settings are.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.testing import Broker

GONE_SECONDS_MAX = 8.0  # on a busy machine; what the clients would wait for by themselves is half a minute and more
READY_SECONDS_MAX = 60.0

PREAMBLE = """
import asyncio, sys
from barnabas import Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings
from barnabas import TopicPartition, blocking
from barnabas.model.errors import BarnabasError
servers = (sys.argv[1],)
def ready():
    print("ready", flush=True)
"""

SCRIPTS = {
    "blocking poll": """
with blocking.Consumer(ConsumerSettings(bootstrap_servers=servers, group_id="g")) as consumer:
    consumer.subscribe(["idle"])
    ready()
    consumer.poll()
""",
    "blocking for": """
settings = ConsumerSettings(bootstrap_servers=servers, group_id="g", group_protocol="consumer")
with blocking.Consumer(settings) as consumer:
    consumer.subscribe(["idle"])
    ready()
    for record in consumer:
        pass
""",
    "blocking send": """
with blocking.Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
    ready()
    while True:
        producer.send("idle", b"x")
""",
    "blocking send_soon and flush": """
with blocking.Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
    ready()
    while True:
        for number in range(1000):
            producer.send_soon("idle", b"x")
        producer.flush()
""",
    "blocking promise": """
with blocking.Producer(ProducerSettings(bootstrap_servers=servers, linger_ms=3_600_000)) as producer:
    promise = producer.send_soon("idle", b"x")
    ready()
    promise.result()
""",
    "blocking transaction": """
with blocking.Producer(ProducerSettings(bootstrap_servers=servers, transactional_id="t")) as producer:
    ready()
    while True:
        with producer.transaction():
            producer.send_soon("idle", b"x")
""",
    "blocking admin": """
with blocking.Admin(Settings(bootstrap_servers=servers)) as admin:
    ready()
    while True:
        try:
            admin.list_topics()
        except BarnabasError:
            pass
""",
    "blocking read": """
import barnabas
ready()
while True:
    barnabas.read("idle", bootstrap_servers=servers[0])
""",
    "poll": """
async def main():
    async with Consumer(ConsumerSettings(bootstrap_servers=servers, group_id="g")) as consumer:
        await consumer.subscribe(["idle"])
        ready()
        await consumer.poll()
asyncio.run(main())
""",
    "async for": """
async def main():
    settings = ConsumerSettings(bootstrap_servers=servers, group_id="g", group_protocol="consumer")
    async with Consumer(settings) as consumer:
        await consumer.subscribe(["idle"])
        ready()
        async for record in consumer:
            pass
asyncio.run(main())
""",
    "send": """
async def main():
    async with Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
        ready()
        while True:
            await producer.send("idle", b"x")
asyncio.run(main())
""",
    "send_soon without a pause": """
async def main():
    async with Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
        ready()
        while True:
            await producer.send_soon("idle", b"x")
asyncio.run(main())
""",
    "transaction": """
async def main():
    async with Producer(ProducerSettings(bootstrap_servers=servers, transactional_id="t")) as producer:
        ready()
        while True:
            async with producer.transaction():
                await producer.send("idle", b"x")
asyncio.run(main())
""",
    "admin": """
async def main():
    async with Admin(Settings(bootstrap_servers=servers)) as admin:
        ready()
        while True:
            try:
                await admin.list_topics()
            except BarnabasError:
                await asyncio.sleep(0)
asyncio.run(main())
""",
}


class Mute:
    """Takes connections and what comes over them, and never says a word."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, name="mute", daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                self._taken.append(self._server.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(READY_SECONDS_MAX)
        for taken in self._taken:
            taken.close()


@pytest.fixture(scope="module")
def mute() -> Iterator[Mute]:
    mute = Mute()
    yield mute
    mute.close()


@pytest.fixture(scope="module")
def addresses(mute: Mute) -> Iterator[dict[str, str]]:
    with socket.create_server(("127.0.0.1", 0)) as held:
        nobody = f"127.0.0.1:{held.getsockname()[1]}"
    with Broker(settings={"auto.create.topics.enable": "true"}) as broker:
        yield {"a broker": broker.bootstrap_servers, "a mute broker": mute.address, "nobody": nobody}


PEERS = ("a broker", "a mute broker", "nobody")
OFTEN = {
    (name, peer) for name in ("blocking poll", "blocking send_soon and flush", "poll", "send") for peer in PEERS[:2]
}
CASES = [
    pytest.param(name, peer, id=f"{name}-{peer}", marks=() if (name, peer) in OFTEN else pytest.mark.slow)
    for name in SCRIPTS
    for peer in PEERS
]


@pytest.mark.parametrize(("name", "peer"), CASES)
def test_an_interrupt_ends_every_wait(addresses: dict[str, str], name: str, peer: str) -> None:
    code = PREAMBLE + SCRIPTS[name]
    process = subprocess.Popen(
        [sys.executable, "-c", code, addresses[peer]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # it is to be in the midst of its wait
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, complaints = process.communicate(timeout=GONE_SECONDS_MAX + 30)
        assert time.monotonic() - sent < GONE_SECONDS_MAX, f"it took {time.monotonic() - sent:.1f} s"
        assert process.returncode == -signal.SIGINT, complaints
        assert complaints.rstrip().endswith("KeyboardInterrupt")
        assert "never retrieved" not in complaints
        assert "was destroyed but it is pending" not in complaints
    finally:
        process.kill()
        process.wait()
