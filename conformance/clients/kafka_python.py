"""kafka-python: `python kafka_python.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

from typing import Any

from cell import BOOTSTRAP, CODECS, FULL, LATER, SECONDS_MAX, TOPIC, VALUES, Sent, expect, polled, run, until
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

PARTITION = TopicPartition(TOPIC, 0)
ADMIN = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def produce(values: list[bytes], **settings: Any) -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, **settings)
    sent = [producer.send(TOPIC, value, partition=0) for value in values]
    for one in sent:
        one.get(SECONDS_MAX)
    producer.close()


def consumer(**settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest", enable_auto_commit=False, **settings
    )


def messages(reader: KafkaConsumer, count: int) -> list[Any]:
    return polled(lambda: [one for many in reader.poll(timeout_ms=1000).values() for one in many], count)


def assigned(count: int, **settings: Any) -> list[Any]:
    """Without a group."""
    reader = consumer(**settings)
    reader.assign([PARTITION])
    found = messages(reader, count)
    reader.close()
    return found


def values_of(found: list[Any]) -> list[bytes]:
    return [message.value for message in found]


def round_trip() -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    for one in FULL:
        sent = producer.send(TOPIC, one.value, one.key, list(one.headers), 0, one.timestamp_ms)
        sent.get(SECONDS_MAX)
    producer.close()
    found = [
        Sent(message.key, message.value, list(message.headers), message.timestamp) for message in assigned(len(FULL))
    ]
    expect(FULL, found)


def codecs() -> None:
    for codec in CODECS:
        produce(VALUES, compression_type=codec)
    expect(VALUES * len(CODECS), values_of(assigned(len(VALUES) * len(CODECS))))


def idempotence() -> None:
    for _ in range(2):
        produce(VALUES, enable_idempotence=True, acks="all")
    expect(VALUES * 2, values_of(assigned(6)))


def offsets() -> None:
    round_trip()
    reader = consumer()
    expect({PARTITION: 0}, reader.beginning_offsets([PARTITION]))
    expect({PARTITION: 3}, reader.end_offsets([PARTITION]))
    expect(1, reader.offsets_for_times({PARTITION: FULL[1].timestamp_ms})[PARTITION].offset)
    reader.close()


def topics() -> None:
    ADMIN.create_partitions({TOPIC: 3})
    until(lambda: len(ADMIN.describe_topics([TOPIC])[0]["partitions"]) == 3)
    ADMIN.delete_topics([TOPIC])
    until(lambda: TOPIC not in ADMIN.list_topics())


def group() -> None:
    for values in (VALUES, LATER):
        produce(values)
        reader = consumer(group_id=TOPIC)
        reader.subscribe([TOPIC])
        expect(values, values_of(messages(reader, 3)))
        reader.commit()
        reader.close()


def transactions() -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=TOPIC)
    producer.init_transactions()
    for value, is_kept in ((b"lost", False), (b"kept", True)):
        producer.begin_transaction()
        producer.send(TOPIC, value, partition=0)
        producer.flush(SECONDS_MAX)
        (producer.commit_transaction if is_kept else producer.abort_transaction)()
    producer.close()
    expect([b"kept"], values_of(assigned(1, isolation_level="read_committed")))


ADMIN.create_topics([NewTopic(TOPIC, 1, 1)])
run(
    {
        "round-trip": round_trip,
        "codecs": codecs,
        "idempotence": idempotence,
        "offsets": offsets,
        "topics": topics,
        "group": group,
        "transactions": transactions,
    }
)
ADMIN.close()
