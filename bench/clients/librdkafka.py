"""librdkafka's producer as a client, through confluent-kafka: what most Python programs put between them and a broker.

The load runs in a process of its own (this module as a program), so that its CPU is told from the harness's.
"""

from __future__ import annotations

import json
import os
import sys
import time

from bench.clients.outcome import Outcome, run_program
from bench.clients.topics import topic_of
from bench.peers import Peer
from bench.workloads import Pace, Workload

_FLUSH_SECONDS_MAX = 60


def produce(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    size = int(workload.parameters["record-bytes"])
    with topic_of(peer, workload) as topic:
        command = [sys.executable, "-m", __name__, peer.bootstrap, topic, str(pace.records), str(size)]
        printed, cost, client_seconds = run_program(peer, command)
    figures: dict[str, float] = json.loads(printed)
    figures["cpu_seconds_per_gigabyte"] = cost.cpu_seconds / (figures["bytes"] / 1e9)
    return Outcome(figures, cost, client_seconds)


def main(bootstrap: str, topic: str, count: int, size: int) -> None:
    from confluent_kafka import KafkaError, Producer

    failures: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "error_cb": failures.append,
        }
    )
    value = os.urandom(size)
    started = time.monotonic()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(_FLUSH_SECONDS_MAX)
    seconds = time.monotonic() - started
    if left or failures:
        raise SystemExit(f"{left} records were not delivered: {failures[:1]}")
    print(
        json.dumps(
            {
                "records_per_second": count / seconds,
                "megabytes_per_second": count * size / seconds / 1e6,
                "bytes": float(count * size),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
