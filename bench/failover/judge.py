"""Reads back what loads have written, with a client that wrote none of it, and compares it with what was acknowledged.

The reader is librdkafka's consumer, with its checksums on. Nothing acknowledged may be lost, doubled or out of order.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from confluent_kafka import Consumer, TopicPartition

from bench.failover.load import PARTITIONS, ClientLoad, ProofFailed

READ_SECONDS_MAX = 30


def read_partition(consumer: Consumer, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """Offset and value of every record, from the first on."""
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=READ_SECONDS_MAX)
    if low != 0:
        raise ProofFailed(f"{topic}-{partition} begins at {low}")
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    while len(found) < high:
        messages = consumer.consume(5000, timeout=0.2)
        if messages:
            deadline = time.monotonic() + READ_SECONDS_MAX
        elif time.monotonic() > deadline:
            raise ProofFailed(f"{topic}-{partition} ends at {high}, and {len(found)} could be read")
        for message in messages:
            if message.error() is not None:
                raise ProofFailed(f"{topic}-{partition}: {message.error()}")
            found.append((message.offset(), message.value()))
    return found


def compare(
    name: str, acknowledged: Mapping[int, bytes], found: list[tuple[int, bytes]], placeless: Collection[bytes] = ()
) -> None:
    """One partition: what was acknowledged, by offset or without one, and what is there: the same and in order."""
    values = [value for _, value in found]
    if values != sorted(set(values)):
        raise ProofFailed(f"{name} has repetitions or disorder")
    missing = sorted(set(placeless) - set(values))
    if missing:
        raise ProofFailed(f"{name}: acknowledged and not found: {missing[:3]}")
    found = [(offset, value) for offset, value in found if value not in placeless]
    if dict(found) != dict(acknowledged):
        lost = sorted(set(acknowledged.items()) - set(found))
        more = sorted(set(found) - set(acknowledged.items()))
        raise ProofFailed(f"{name}: not found as acknowledged: {lost[:3]}; found and not acknowledged: {more[:3]}")


def judge(load: ClientLoad, bootstrap_servers: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "judge", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        for partition in range(PARTITIONS):
            acknowledged = {
                offset: b"%012d" % number for (place, offset), number in load.acknowledged.items() if place == partition
            }
            placeless = {b"%012d" % number for place, number in load.placeless if place == partition}
            found = read_partition(consumer, load.topic, partition)
            compare(f"{load.topic}-{partition}", acknowledged, found, placeless)
    finally:
        consumer.close()
