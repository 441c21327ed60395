"""A program that copies a topic exactly once: it reads, writes and stores its positions in one transaction, and again.

Run as a process that a test kills, with the words: bootstrap servers, source, target, group, group protocol,
transactional id, seed. It aborts every tenth transaction of its own accord, and says ``C records`` after each commit.
An error that a transaction cannot survive ends both clients, and it starts over where the group's positions are.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import NamedTuple, cast

from barnabas import (
    BarnabasError,
    Consumer,
    ConsumerRecord,
    ConsumerSettings,
    Producer,
    ProducerSettings,
    TopicPartition,
)
from barnabas.client.settings.consumer import GroupProtocol

SESSION_MS = 3000
TRANSACTION_RECORDS = 200
ABORTS = 0.1


class Words(NamedTuple):
    bootstrap_servers: str
    source: str
    target: str
    group: str
    protocol: str
    transactional_id: str
    seed: str


class ChangedMyMind(Exception):
    """A transaction is aborted for no other reason."""


async def copy_for_ever(words: Words) -> None:
    chance = random.Random(words.seed)
    while True:
        try:
            await copy(words, chance)
        except BarnabasError as error:
            say(f"R {type(error).__name__}: {error}")
        await asyncio.sleep(0.1)


async def copy(words: Words, chance: random.Random) -> None:
    """Until something goes wrong: positions in memory are then worth nothing, and both clients begin anew."""
    servers = tuple(words.bootstrap_servers.split(","))
    reading = ConsumerSettings(
        bootstrap_servers=servers,
        group_id=words.group,
        group_protocol=cast("GroupProtocol", words.protocol),
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=SESSION_MS // 6,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    writing = ProducerSettings(bootstrap_servers=servers, transactional_id=words.transactional_id, linger_ms=1)
    async with Consumer(reading) as consumer, Producer(writing) as producer:
        await consumer.subscribe(words.source)
        while True:
            records = await consumer.poll(TRANSACTION_RECORDS, timeout_ms=500)
            if not records:
                continue
            try:
                await copy_records(words, consumer, producer, records, is_aborted=chance.random() < ABORTS)
            except ChangedMyMind:
                for record in reversed(records):
                    consumer.seek(TopicPartition(record.topic, record.partition), record.offset)
            else:
                say(f"C {len(records)}")


async def copy_records(
    words: Words, consumer: Consumer, producer: Producer, records: list[ConsumerRecord], *, is_aborted: bool
) -> None:
    async with producer.transaction():
        for record in records:
            await producer.send_soon(words.target, record.value, partition=record.partition)
        positions = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in records}
        await producer.send_offsets(positions, consumer.group_metadata)
        if is_aborted:
            raise ChangedMyMind


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(copy_for_ever(Words(*sys.argv[1:])))
