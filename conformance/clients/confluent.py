"""confluent-kafka: `python confluent.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

from functools import partial
from typing import Any

from cell import BOOTSTRAP, CODECS, FULL, LATER, SECONDS_MAX, TOPIC, VALUES, Sent, expect, polled, run, until
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec  # type: ignore[attr-defined]

ADMIN = AdminClient({"bootstrap.servers": BOOTSTRAP})


def produce(values: list[bytes], **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP, **_dotted(settings)})
    for value in values:
        producer.produce(TOPIC, value)
    expect(0, producer.flush(SECONDS_MAX))


def consumer(**settings: Any) -> Consumer:
    shared = {"bootstrap.servers": BOOTSTRAP, "group.id": TOPIC, "auto.offset.reset": "earliest"}
    return Consumer({**shared, "enable.auto.commit": "false", **_dotted(settings)})


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def messages(reader: Consumer, count: int) -> list[Any]:
    found = polled(lambda: reader.consume(count, timeout=1.0), count)
    for message in found:
        if message.error() is not None:  # type: ignore[attr-defined]
            raise KafkaException(message.error())  # type: ignore[attr-defined]
    return found


def assigned(count: int, **settings: Any) -> list[Any]:
    """Without a group."""
    reader = consumer(**settings)
    reader.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found = messages(reader, count)
    reader.close()
    return found


def values_of(found: list[Any]) -> list[bytes]:
    return [message.value() for message in found]


def round_trip() -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for one in FULL:
        producer.produce(TOPIC, one.value, one.key, partition=0, headers=list(one.headers), timestamp=one.timestamp_ms)
    expect(0, producer.flush(SECONDS_MAX))
    found = [
        Sent(message.key(), message.value(), message.headers() or [], message.timestamp()[1])
        for message in assigned(len(FULL))
    ]
    expect(FULL, found)


def codecs() -> None:
    for codec in CODECS:
        produce(VALUES, compression_type=codec)
    expect(VALUES * len(CODECS), values_of(assigned(len(VALUES) * len(CODECS))))


def idempotence() -> None:
    for _ in range(2):
        produce(VALUES, enable_idempotence=True)
    expect(VALUES * 2, values_of(assigned(6)))


def offsets() -> None:
    round_trip()
    reader, partition = consumer(), TopicPartition(TOPIC, 0)
    expect((0, 3), reader.get_watermark_offsets(partition, SECONDS_MAX))
    asked = TopicPartition(TOPIC, 0, FULL[1].timestamp_ms)
    expect(1, reader.offsets_for_times([asked], SECONDS_MAX)[0].offset)
    reader.close()
    (latest,) = ADMIN.list_offsets({partition: OffsetSpec.latest()}).values()
    expect(3, latest.result(SECONDS_MAX).offset)


def topics() -> None:
    ADMIN.create_partitions([NewPartitions(TOPIC, 3)])[TOPIC].result(SECONDS_MAX)
    until(lambda: len(ADMIN.list_topics(TOPIC, timeout=SECONDS_MAX).topics[TOPIC].partitions) == 3)
    ADMIN.delete_topics([TOPIC])[TOPIC].result(SECONDS_MAX)
    until(lambda: TOPIC not in ADMIN.list_topics(timeout=SECONDS_MAX).topics)


def group(**settings: Any) -> None:
    for values in (VALUES, LATER):
        produce(values)
        reader = consumer(**settings)
        reader.subscribe([TOPIC])
        expect(values, values_of(messages(reader, 3)))
        reader.commit(asynchronous=False)
        reader.close()


def transactions() -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": TOPIC})
    producer.init_transactions(SECONDS_MAX)
    for value, is_kept in ((b"lost", False), (b"kept", True)):
        producer.begin_transaction()
        producer.produce(TOPIC, value)
        producer.flush(SECONDS_MAX)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(SECONDS_MAX)
    expect([b"kept"], values_of(assigned(1, isolation_level="read_committed")))


ADMIN.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(SECONDS_MAX)
run(
    {
        "round-trip": round_trip,
        "codecs": codecs,
        "idempotence": idempotence,
        "offsets": offsets,
        "topics": topics,
        "group": group,
        "next-group": partial(group, group_protocol="consumer"),
        "transactions": transactions,
    }
)
