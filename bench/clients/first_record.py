"""How long a new group waits for its first record, as a program: librdkafka's consumer, made, subscribed and polled.

Each time is that of another group; the topic has a record already. Run by `coordination.py`; prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

from confluent_kafka import Consumer, Producer

_SECONDS_MAX = 30


def main(bootstrap: str, topic: str, groups: int) -> dict[str, float]:
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    producer = Producer(settings)
    producer.produce(topic, b"v")
    if producer.flush(_SECONDS_MAX):
        raise SystemExit("the record was not written")
    _measure(settings, topic)  # the first group of all makes the topic of offsets
    print("BEGINS", flush=True)
    times = [_measure(settings, topic) for _ in range(groups)]
    return {"first_record_ms": statistics.median(times) * 1000, "slowest_ms": max(times) * 1000}


def _measure(settings: dict[str, object], topic: str) -> float:
    group = {"group.id": f"bench-{os.urandom(4).hex()}", "auto.offset.reset": "earliest"}
    started = time.monotonic()
    consumer = Consumer({**settings, **group})
    consumer.subscribe([topic])
    message = consumer.poll(_SECONDS_MAX)
    took = time.monotonic() - started
    if message is None or message.error() is not None:
        raise SystemExit(f"no record: {message and message.error()}")
    consumer.close()
    return took


if __name__ == "__main__":
    print(json.dumps(main(f"{sys.argv[1]}:{sys.argv[2]}", sys.argv[3], int(sys.argv[4]))))
