"""kafka-python: `python kafka_python.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

import sys
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

SECONDS_MAX = 30
FEATURE, BOOTSTRAP, TOPIC = sys.argv[1:]
VALUES = [b"a", b"b", b"c"]
# Not the same again: those would also come to a group that forgot where it stood.
LATER = [b"d", b"e", b"f"]


def produce(values: list[bytes]) -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    for value in values:
        producer.send(TOPIC, value, partition=0).get(SECONDS_MAX)
    producer.close()


def consume(count: int, **settings: Any) -> list[bytes]:
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=BOOTSTRAP,
        group_id=TOPIC,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    found: list[bytes] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        for messages in consumer.poll(timeout_ms=1000).values():
            found.extend(message.value for message in messages)
    consumer.commit()
    consumer.close()
    return found


def group() -> None:
    for values in (VALUES, LATER):
        produce(values)
        found = consume(3)
        assert found == values, f"expected {values}, got {found}"


def transactions() -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=TOPIC)
    producer.init_transactions()
    for value, is_kept in ((b"lost", False), (b"kept", True)):
        producer.begin_transaction()
        producer.send(TOPIC, value, partition=0)
        producer.flush(SECONDS_MAX)
        (producer.commit_transaction if is_kept else producer.abort_transaction)()
    producer.close()
    assert consume(1, isolation_level="read_committed") == [b"kept"]


{"group": group, "transactions": transactions}[FEATURE]()
