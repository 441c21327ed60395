"""Consume, process, produce, by each client's own consumer and producer: offsets and records in one transaction.

Every third transaction is aborted, and its records are read again from the committed offset: the copy has each once.
Java's loop is Kafka's TransactionalMessageCopier, in ``test_message_copier.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from transactional_clients import READERS

CreateTopic = Callable[..., str]

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

COUNT = 300
AT_ONCE = 20
ABORTED = 3  # one of so many
SECONDS_MAX = 20.0


def copy_with_confluent(bootstrap: str, source: str, target: str) -> int:
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"copy-{source}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"copy-{source}", "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    consumer.subscribe([source])
    copied = attempts = 0
    while copied < COUNT:
        messages = [each for each in consumer.consume(AT_ONCE, timeout=5.0) if not each.error()]
        if not messages:
            continue
        attempts += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=0)
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS_MAX)
        if attempts % ABORTED == 0:
            producer.flush(SECONDS_MAX)
            producer.abort_transaction(SECONDS_MAX)
            (committed,) = consumer.committed([TopicPartition(source, 0)], timeout=SECONDS_MAX)
            consumer.seek(TopicPartition(source, 0, max(committed.offset, 0)))
        else:
            producer.commit_transaction(SECONDS_MAX)
            copied += len(messages)
    consumer.close()
    return attempts


def copy_with_kafka_python(bootstrap: str, source: str, target: str) -> int:
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

    partition = TopicPartition(source, 0)
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=f"copy-{source}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=AT_ONCE,
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"copy-{source}")
    copied = attempts = 0
    try:
        producer.init_transactions()
        while copied < COUNT:
            messages = consumer.poll(timeout_ms=1000).get(partition, [])
            if not messages:
                continue
            attempts += 1
            producer.begin_transaction()
            for message in messages:
                producer.send(target, message.value, partition=0)
            offsets = {partition: OffsetAndMetadata(messages[-1].offset + 1, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if attempts % ABORTED == 0:
                producer.flush(SECONDS_MAX)
                producer.abort_transaction()
                consumer.seek(partition, consumer.committed(partition) or 0)
            else:
                producer.commit_transaction()
                copied += len(messages)
    finally:
        consumer.close()
        producer.close()
    return attempts


def copy_with_aiokafka(bootstrap: str, source: str, target: str) -> int:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    partition, group = TopicPartition(source, 0), f"copy-{source}"

    async def copy() -> int:
        consumer = AIOKafkaConsumer(
            source,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=group)
        copied = attempts = 0
        async with consumer, producer:
            while copied < COUNT:
                found = await consumer.getmany(partition, timeout_ms=1000, max_records=AT_ONCE)
                messages = found.get(partition, [])
                if not messages:
                    continue
                attempts += 1
                await producer.begin_transaction()
                for message in messages:
                    await producer.send(target, message.value, partition=0)
                await producer.send_offsets_to_transaction({partition: messages[-1].offset + 1}, group)
                if attempts % ABORTED == 0:
                    await producer.flush()
                    await producer.abort_transaction()
                    consumer.seek(partition, await consumer.committed(partition) or 0)
                else:
                    await producer.commit_transaction()
                    copied += len(messages)
        return attempts

    return asyncio.run(copy())


COPIERS: dict[str, Callable[[str, str, str], int]] = {
    "confluent": copy_with_confluent,
    "kafka-python": copy_with_kafka_python,
    "aiokafka": copy_with_aiokafka,
}


@pytest.mark.parametrize("copier", COPIERS)
def test_a_copy_made_in_transactions_has_everything_once(
    broker_address: str, create_topic: CreateTopic, copier: str
) -> None:
    from confluent_kafka import Producer

    source, target = create_topic(), create_topic()
    plain = Producer({"bootstrap.servers": broker_address, "log_level": 0})
    for number in range(COUNT):
        plain.produce(source, b"%d" % number, partition=0)
    plain.flush(SECONDS_MAX)
    attempts = COPIERS[copier](broker_address, source, target)
    assert attempts > ABORTED  # some were aborted
    last = b"%d" % (COUNT - 1)
    assert READERS["confluent"](broker_address, target, 0, last) == [b"%d" % number for number in range(COUNT)]
