"""aiokafka: `python aiokafka_client.py FEATURE BOOTSTRAP TOPIC`; ends with 0 if the feature works."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SECONDS_MAX = 30
FEATURE, BOOTSTRAP, TOPIC = sys.argv[1:]
VALUES = [b"a", b"b", b"c"]
# Not the same again: those would also come to a group that forgot where it stood.
LATER = [b"d", b"e", b"f"]


async def produce(values: list[bytes]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP) as producer:
        for value in values:
            await producer.send_and_wait(TOPIC, value, partition=0)


async def consume(count: int, **settings: Any) -> list[bytes]:
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=BOOTSTRAP,
        group_id=TOPIC,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    found: list[bytes] = []
    async with consumer, asyncio.timeout(SECONDS_MAX):
        while len(found) < count:
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                found.extend(message.value for message in messages)
        await consumer.commit()
    return found


async def group() -> None:
    for values in (VALUES, LATER):
        await produce(values)
        found = await consume(3)
        assert found == values, f"expected {values}, got {found}"


async def transactions() -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=TOPIC) as producer:
        for value, is_kept in ((b"lost", False), (b"kept", True)):
            await producer.begin_transaction()
            await producer.send_and_wait(TOPIC, value, partition=0)
            await (producer.commit_transaction if is_kept else producer.abort_transaction)()
    assert await consume(1, isolation_level="read_committed") == [b"kept"]


asyncio.run({"group": group, "transactions": transactions}[FEATURE]())
