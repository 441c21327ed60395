"""librdkafka's mock cluster as a peer: what others start in their tests, and so the one to beat at start-up.

It keeps records in memory for a while and has no files, so only its start-up, its memory and its idling are compared.
The process is this very module, run as a program: a producer that carries the mock and waits to be stopped.
"""

from __future__ import annotations

import signal
import sys

from bench.peers.barnabas import BarnabasPeer


class MockPeer(BarnabasPeer):
    """Says READY and its address as Barnabas does, once it has chosen a port."""

    name = "mock"
    stores_records = False

    def command(self) -> list[str]:
        return [sys.executable, "-m", "bench.peers.mock"]


def main() -> None:
    from confluent_kafka import Producer

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    print(f"READY {broker.host}:{broker.port}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
