"""aiokafka: `python aiokafka_client.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from cell import BOOTSTRAP, CODECS, FULL, LATER, TOPIC, VALUES, Sent, expect, run

PARTITION = TopicPartition(TOPIC, 0)
Feature = Callable[[AIOKafkaAdminClient], Awaitable[None]]


async def produce(values: list[bytes], **settings: Any) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, **settings) as producer:
        for value in values:
            await producer.send_and_wait(TOPIC, value, partition=0)


def consumer(**settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest", enable_auto_commit=False, **settings
    )


async def messages(reader: AIOKafkaConsumer, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        for many in (await reader.getmany(timeout_ms=1000)).values():
            found += many
    return found


async def assigned(count: int, **settings: Any) -> list[Any]:
    """Without a group."""
    async with consumer(**settings) as reader:
        reader.assign([PARTITION])
        return await messages(reader, count)


def values_of(found: list[Any]) -> list[bytes]:
    return [message.value for message in found]


async def round_trip(_: AIOKafkaAdminClient) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP) as producer:
        for one in FULL:
            await producer.send_and_wait(TOPIC, one.value, one.key, 0, one.timestamp_ms, list(one.headers))
    found = [
        Sent(message.key, message.value, list(message.headers), message.timestamp)
        for message in await assigned(len(FULL))
    ]
    expect(FULL, found)


async def codecs(_: AIOKafkaAdminClient) -> None:
    for codec in CODECS:
        await produce(VALUES, compression_type=codec)
    expect(VALUES * len(CODECS), values_of(await assigned(len(VALUES) * len(CODECS))))


async def idempotence(_: AIOKafkaAdminClient) -> None:
    for _ in range(2):
        await produce(VALUES, enable_idempotence=True)
    expect(VALUES * 2, values_of(await assigned(6)))


async def offsets(admin: AIOKafkaAdminClient) -> None:
    await round_trip(admin)
    async with consumer() as reader:
        expect({PARTITION: 0}, await reader.beginning_offsets([PARTITION]))
        expect({PARTITION: 3}, await reader.end_offsets([PARTITION]))
        expect(1, (await reader.offsets_for_times({PARTITION: FULL[1].timestamp_ms}))[PARTITION].offset)


async def topics(admin: AIOKafkaAdminClient) -> None:
    await admin.create_partitions({TOPIC: NewPartitions(3)})
    while len((await admin.describe_topics([TOPIC]))[0]["partitions"]) != 3:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.1)
    await admin.delete_topics([TOPIC])
    while TOPIC in await admin.list_topics():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.1)


async def group(_: AIOKafkaAdminClient) -> None:
    for values in (VALUES, LATER):
        await produce(values)
        async with consumer(group_id=TOPIC) as reader:
            reader.subscribe([TOPIC])
            expect(values, values_of(await messages(reader, 3)))
            await reader.commit()


async def transactions(_: AIOKafkaAdminClient) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=TOPIC) as producer:
        for value, is_kept in ((b"lost", False), (b"kept", True)):
            await producer.begin_transaction()
            await producer.send_and_wait(TOPIC, value, partition=0)
            await (producer.commit_transaction if is_kept else producer.abort_transaction)()
    expect([b"kept"], values_of(await assigned(1, isolation_level="read_committed")))


async def with_topic(feature: Feature) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 1, 1)])
        await feature(admin)
    finally:
        await admin.close()


FEATURES: dict[str, Feature] = {
    "round-trip": round_trip,
    "codecs": codecs,
    "idempotence": idempotence,
    "offsets": offsets,
    "topics": topics,
    "group": group,
    "transactions": transactions,
}
run({name: partial(with_topic, feature) for name, feature in FEATURES.items()})
