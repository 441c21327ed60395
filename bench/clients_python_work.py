"""What each of Python's clients does in the race: one function for each, run in a process of its own.

Every producer has acks=all and batches of up to 128 KB after at most 5 ms; every consumer reads from the beginning
without a group. The clock starts when the client is connected and stops when the last record is acknowledged or read.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

VALUE = b"x" * 100
BATCH_BYTES = 131_072
LINGER_MS = 5
MANY = 500


class Watch:
    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self, count: int) -> tuple[float, float, int]:
        return time.perf_counter() - self.wall, time.process_time() - self.cpu, count


Outcome = tuple[float, float, int]


# --- confluent-kafka -------------------------------------------------------------------------------------------------


def confluent_produce(servers: str, topic: str, count: int) -> Outcome:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,
            "batch.size": BATCH_BYTES,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(topic, VALUE)
    producer.flush()
    watch = Watch()
    for _ in range(count):
        producer.produce(topic, VALUE)
        producer.poll(0)
    assert producer.flush(120) == 0
    return watch.stop(count)


def _confluent_consumer(servers: str, topic: str) -> tuple[Any, int]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "race", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    return consumer, len(partitions)


def confluent_poll(servers: str, topic: str, count: int) -> Outcome:
    consumer, _ = _confluent_consumer(servers, topic)
    message = consumer.poll(10)
    watch, size, done = Watch(), 0, 0
    while done < count:
        message = consumer.poll(10)
        size += len(message.value())
        done += 1
    outcome = watch.stop(done)
    consumer.close()
    return outcome


def confluent_consume(servers: str, topic: str, count: int) -> Outcome:
    consumer, _ = _confluent_consumer(servers, topic)
    consumer.consume(MANY, 10)
    watch, size, done = Watch(), 0, 0
    while done < count:
        for message in consumer.consume(MANY, 10):
            size += len(message.value())
            done += 1
    outcome = watch.stop(done)
    consumer.close()
    return outcome


# --- ours ------------------------------------------------------------------------------------------------------------


def _ours_settings(servers: str) -> Any:
    from barnabas import ProducerSettings

    return ProducerSettings(bootstrap_servers=(servers,), batch_size=BATCH_BYTES, linger_ms=LINGER_MS)


async def ours_send_soon(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import Producer

    async with Producer(_ours_settings(servers)) as producer:
        await producer.send(topic, VALUE)
        watch = Watch()
        for _ in range(count):
            await producer.send_soon(topic, VALUE)
        await producer.flush()
        return watch.stop(count)


def ours_blocking(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import blocking

    with blocking.Producer(_ours_settings(servers)) as producer:
        producer.send(topic, VALUE)
        watch = Watch()
        for _ in range(count):
            producer.send_soon(topic, VALUE)
        producer.flush()
        return watch.stop(count)


async def ours_send_many(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import Producer

    async with Producer(_ours_settings(servers)) as producer:
        await producer.send(topic, VALUE)
        watch = Watch()
        for _ in range(count // 10_000):
            await producer.send_many(topic, [(None, VALUE) for _ in range(10_000)])
        return watch.stop(count // 10_000 * 10_000)


async def ours_send_arrow(servers: str, topic: str, count: int) -> Outcome:
    import pyarrow as pa

    from barnabas import Producer

    table = pa.table({"value": pa.array([VALUE] * (count // 10), pa.binary())})
    async with Producer(_ours_settings(servers)) as producer:
        await producer.send_arrow(table.slice(0, 10), topic)
        watch = Watch()
        for _ in range(10):
            await producer.send_arrow(table, topic)
        return watch.stop(len(table) * 10)


async def _assigned(consumer: Any, topic: str) -> None:
    from barnabas import TopicPartition

    found = await consumer.cluster.topic(topic)
    await consumer.assign([TopicPartition(topic, index) for index in range(len(found.partitions))])


async def ours_async_for(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import Consumer, ConsumerSettings

    async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
        await _assigned(consumer, topic)
        await anext(consumer)
        watch, size, done = Watch(), 0, 0
        async for record in consumer:
            size += len(record.value or b"")
            done += 1
            if done == count:
                break
        return watch.stop(done)


def _blocking_consumer(servers: str, topic: str) -> Any:
    from barnabas import ConsumerSettings, TopicPartition, blocking

    consumer = blocking.Consumer(ConsumerSettings(bootstrap_servers=(servers,)))
    with blocking.Admin(consumer._inner.settings) as admin:
        partitions = admin.describe_topics([topic])[topic].partitions  # type: ignore[union-attr]
    consumer.assign([TopicPartition(topic, index) for index in range(len(partitions))])
    return consumer


def ours_blocking_for(servers: str, topic: str, count: int) -> Outcome:
    with _blocking_consumer(servers, topic) as consumer:
        consumer.poll(1)
        watch, size, done = Watch(), 0, 0
        for record in consumer:
            size += len(record.value)
            done += 1
            if done == count:
                break
        return watch.stop(done)


async def ours_poll(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import Consumer, ConsumerSettings

    async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
        await _assigned(consumer, topic)
        await consumer.poll(1)
        watch, size, done = Watch(), 0, 0
        while done < count:
            for record in await consumer.poll(MANY):
                size += len(record.value or b"")
                done += 1
        return watch.stop(done)


def ours_blocking_poll(servers: str, topic: str, count: int) -> Outcome:
    with _blocking_consumer(servers, topic) as consumer:
        consumer.poll(1)
        watch, size, done = Watch(), 0, 0
        while done < count:
            for record in consumer.poll(MANY):
                size += len(record.value)
                done += 1
        return watch.stop(done)


async def ours_poll_arrow(servers: str, topic: str, count: int) -> Outcome:
    from barnabas import Consumer, ConsumerSettings

    async with Consumer(ConsumerSettings(bootstrap_servers=(servers,))) as consumer:
        await _assigned(consumer, topic)
        await consumer.poll_arrow()
        watch, size, done = Watch(), 0, 0
        while done < count:
            table = await consumer.poll_arrow()
            size += table.nbytes
            done += len(table)
        return watch.stop(done)


# --- aiokafka --------------------------------------------------------------------------------------------------------


async def aiokafka_send(servers: str, topic: str, count: int) -> Outcome:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        acks="all",
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
    )
    await producer.start()
    await producer.send_and_wait(topic, VALUE)
    watch = Watch()
    for _ in range(count):
        await producer.send(topic, VALUE)
    await producer.flush()
    outcome = watch.stop(count)
    await producer.stop()
    return outcome


async def _aiokafka_consumer(servers: str, topic: str) -> Any:
    from aiokafka import AIOKafkaConsumer

    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    await consumer.getone()
    return consumer


async def aiokafka_async_for(servers: str, topic: str, count: int) -> Outcome:
    consumer = await _aiokafka_consumer(servers, topic)
    watch, size, done = Watch(), 0, 0
    async for record in consumer:
        size += len(record.value)
        done += 1
        if done == count:
            break
    outcome = watch.stop(done)
    await consumer.stop()
    return outcome


async def aiokafka_getmany(servers: str, topic: str, count: int) -> Outcome:
    consumer = await _aiokafka_consumer(servers, topic)
    watch, size, done = Watch(), 0, 0
    while done < count:
        for records in (await consumer.getmany(timeout_ms=1000, max_records=MANY)).values():
            for record in records:
                size += len(record.value)
                done += 1
    outcome = watch.stop(done)
    await consumer.stop()
    return outcome


# --- kafka-python ----------------------------------------------------------------------------------------------------


def kafka_python_send(servers: str, topic: str, count: int) -> Outcome:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
    )
    producer.send(topic, VALUE).get(30)
    watch = Watch()
    for _ in range(count):
        producer.send(topic, VALUE)
    producer.flush()
    outcome = watch.stop(count)
    producer.close()
    return outcome


def _kafka_python_consumer(servers: str, topic: str) -> Any:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    next(consumer)
    return consumer


def kafka_python_for(servers: str, topic: str, count: int) -> Outcome:
    consumer = _kafka_python_consumer(servers, topic)
    watch, size, done = Watch(), 0, 0
    for record in consumer:
        size += len(record.value)
        done += 1
        if done == count:
            break
    outcome = watch.stop(done)
    consumer.close()
    return outcome


def kafka_python_poll(servers: str, topic: str, count: int) -> Outcome:
    consumer = _kafka_python_consumer(servers, topic)
    watch, size, done = Watch(), 0, 0
    while done < count:
        for records in consumer.poll(timeout_ms=1000, max_records=MANY).values():
            for record in records:
                size += len(record.value)
                done += 1
    outcome = watch.stop(done)
    consumer.close()
    return outcome


WORK: dict[str, Callable[[str, str, int], Outcome | Coroutine[Any, Any, Outcome]]] = {
    "confluent produce": confluent_produce,
    "confluent poll": confluent_poll,
    "confluent consume": confluent_consume,
    "ours send_soon": ours_send_soon,
    "ours blocking": ours_blocking,
    "ours send_many": ours_send_many,
    "ours send_arrow": ours_send_arrow,
    "ours async for": ours_async_for,
    "ours blocking for": ours_blocking_for,
    "ours poll": ours_poll,
    "ours blocking poll": ours_blocking_poll,
    "ours poll_arrow": ours_poll_arrow,
    "aiokafka send": aiokafka_send,
    "aiokafka async for": aiokafka_async_for,
    "aiokafka getmany": aiokafka_getmany,
    "kafka-python send": kafka_python_send,
    "kafka-python for": kafka_python_for,
    "kafka-python poll": kafka_python_poll,
}


def main() -> None:
    name, servers, topic, count = sys.argv[1:]
    work = WORK[name](servers, topic, int(count))
    if asyncio.iscoroutine(work):
        import uvloop

        work = uvloop.run(work)
    print(json.dumps(work))


if __name__ == "__main__":
    main()
