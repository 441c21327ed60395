"""Sends with librdkafka, through confluent-kafka; everything but what the proof needs is left at its default."""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Producer

from bench.failover.senders.voice import Task, Voice, task_of

FLUSH_SECONDS_MAX = 120


def send(task: Task, voice: Voice) -> None:
    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap_servers,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 1,
            "message.timeout.ms": 1_800_000,
            "request.timeout.ms": task.request_timeout_ms,
            "socket.timeout.ms": 2 * task.request_timeout_ms,  # twice as much by default too
            "log_level": 0,
        }
    )
    sent = 0

    def delivered(error: Any, message: Any, number: int, sent_ns: int) -> None:
        if error is not None:
            voice.failed(error)
        else:
            voice.acknowledged(message.partition(), message.offset(), number, sent_ns)

    while not voice.is_over:
        for partition in range(task.partitions):
            number, sent_ns = sent, time.monotonic_ns()
            try:
                producer.produce(
                    task.topic,
                    b"%012d" % number,
                    partition=partition,
                    on_delivery=lambda e, m, number=number, sent_ns=sent_ns: delivered(e, m, number, sent_ns),
                )
            except BufferError:
                break
            sent += 1
        producer.poll(0)
        time.sleep(task.pause_seconds)
    if producer.flush(FLUSH_SECONDS_MAX):
        voice.failed("records that were neither acknowledged nor refused")
    voice.ended(sent)


if __name__ == "__main__":
    send(task_of(sys.argv[1:]), Voice())
