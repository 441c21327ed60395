"""Our own client by its blocking face: `python barnabas_client.py FEATURE BOOTSTRAP TOPIC`; 0 if the feature works."""

from __future__ import annotations

from functools import partial
from typing import Any

from cell import BOOTSTRAP, CODECS, FULL, LATER, TOPIC, VALUES, Sent, expect, polled, run, until

from barnabas import ConsumerSettings, NewTopic, ProducerSettings, Settings, TopicPartition
from barnabas.client.blocking import Admin, Consumer, Producer
from barnabas.client.offsets import EARLIEST

PARTITION = TopicPartition(TOPIC, 0)


class GivenUp(Exception):
    """Leaves a transaction, so that it is aborted."""


def producer(**settings: Any) -> Producer[bytes, bytes]:
    return Producer(ProducerSettings(bootstrap_servers=(BOOTSTRAP,), **settings))


def produce(values: list[bytes], **settings: Any) -> None:
    with producer(**settings) as writer:
        writer.send_many(TOPIC, [(None, value) for value in values])


def consumer(**settings: Any) -> Consumer[bytes, bytes]:
    shared: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    return Consumer(ConsumerSettings(bootstrap_servers=(BOOTSTRAP,), **shared, **settings))


def messages(reader: Consumer[bytes, bytes], count: int) -> list[Any]:
    return polled(lambda: reader.poll(timeout_ms=1000), count)


def assigned(count: int, **settings: Any) -> list[Any]:
    """Without a group."""
    with consumer(**settings) as reader:
        reader.assign({PARTITION: EARLIEST})
        return messages(reader, count)


def values_of(found: list[Any]) -> list[bytes]:
    return [record.value for record in found]


def round_trip() -> None:
    with producer() as writer:
        for one in FULL:
            where = {"partition": 0, "timestamp_ms": one.timestamp_ms}
            writer.send(TOPIC, one.value, key=one.key, headers=one.headers, **where)
    found = [
        Sent(record.key, record.value, list(record.headers), record.timestamp_ms) for record in assigned(len(FULL))
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
    with consumer() as reader:
        expect({PARTITION: 0}, reader.beginning_offsets([PARTITION]))
        expect({PARTITION: 3}, reader.end_offsets([PARTITION]))
        found = reader.offsets_for_times({PARTITION: FULL[1].timestamp_ms})[PARTITION]
        expect(1, None if found is None else found.offset)


def topics() -> None:
    with Admin(SETTINGS) as admin:
        admin.create_partitions({TOPIC: 3})
        until(lambda: [len(one.partitions) for one in admin.list_topics() if one.name == TOPIC] == [3])
        admin.delete_topic(TOPIC)
        until(lambda: TOPIC not in [one.name for one in admin.list_topics()])


def group(**settings: Any) -> None:
    for values in (VALUES, LATER):
        produce(values)
        with consumer(group_id=TOPIC, **settings) as reader:
            reader.subscribe(TOPIC)
            expect(values, values_of(messages(reader, 3)))
            reader.commit()


def transactions() -> None:
    with producer(transactional_id=TOPIC) as writer:
        try:
            with writer.transaction():
                writer.send(TOPIC, b"lost")
                raise GivenUp
        except GivenUp:
            pass
        with writer.transaction():
            writer.send(TOPIC, b"kept")
    expect([b"kept"], values_of(assigned(1, isolation_level="read_committed")))


SETTINGS = Settings(bootstrap_servers=(BOOTSTRAP,))
with Admin(SETTINGS) as first:
    first.create_topic(NewTopic(TOPIC, 1, 1))
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
