"""confluent-kafka: `python confluent.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

SECONDS_MAX = 30
FEATURE, BOOTSTRAP, TOPIC = sys.argv[1:]
VALUES = [b"a", b"b", b"c"]
# Not the same again: those would also come to a group that forgot where it stood.
LATER = [b"d", b"e", b"f"]


def produce(values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for value in values:
        producer.produce(TOPIC, value)
    assert producer.flush(SECONDS_MAX) == 0


def consume(count: int, **settings: str) -> list[bytes]:
    chosen = {name.replace("_", "."): value for name, value in settings.items()}
    shared = {"bootstrap.servers": BOOTSTRAP, "group.id": TOPIC, "auto.offset.reset": "earliest"}
    consumer = Consumer({**shared, "enable.auto.commit": "false", **chosen})
    consumer.subscribe([TOPIC])
    found: list[bytes] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def group(**settings: str) -> None:
    for values in (VALUES, LATER):
        produce(values)
        found = consume(3, **settings)
        assert found == values, f"expected {values}, got {found}"


def transactions() -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": TOPIC})
    producer.init_transactions(SECONDS_MAX)
    for value, is_kept in ((b"lost", False), (b"kept", True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value)
        producer.flush(SECONDS_MAX)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(SECONDS_MAX)
    assert consume(1, isolation_level="read_committed") == [b"kept"]


administrator = AdminClient({"bootstrap.servers": BOOTSTRAP})
administrator.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(SECONDS_MAX)
match FEATURE:
    case "group":
        group()
    case "next-group":
        group(group_protocol="consumer")
    case "transactions":
        transactions()
    case _:
        sys.exit(f"no {FEATURE}")
