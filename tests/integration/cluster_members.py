"""Consumers that commit what they have read, one batch after the other, and notice when a committed offset is lost.

Each runs in a thread: librdkafka's, Java's, aiokafka's and our own. A record below what was committed, or one that was
skipped, is a failure; a commit that fails because its coordinator has just died is tried again with the next batch, and
counts as an error that the client has seen.
"""

from __future__ import annotations

import asyncio
import time

import confluent_kafka
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from committing import Committing
from java_programs import JavaProgram

from barnabas import BarnabasError, Consumer, ConsumerSettings, TopicPartition


class Member(Committing):
    """What all have in common: what was read, and what was committed."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.bootstrap, self.topic, self.group = bootstrap, topic, group
        self.committed: dict[int, int] = {}  # offsets whose commit was acknowledged, by partition
        self.errors: list[str] = []  # what the client was told, and went on from
        self._next: dict[int, int] = {}
        super().__init__()

    def _note(self, partition: int, offset: int) -> None:
        following, committed = self._next.get(partition, 0), self.committed.get(partition, 0)
        if not committed <= offset <= following:
            self.problems.append(f"read {offset} of {partition}: {committed} was committed, {following} was next")
        self._next[partition] = offset + 1

    def _stored(self) -> None:
        self.committed = dict(self._next)
        self.committed_ns = time.monotonic_ns()


class LibrdkafkaMember(Member):
    name = "librdkafka"

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        consumer.subscribe([self.topic])
        while not self._is_over.is_set():
            found = consumer.consume(500, timeout=0.1)
            self.errors += [str(each.error()) for each in found if each.error() is not None]
            messages = [each for each in found if each.error() is None]
            for message in messages:
                self._note(message.partition(), message.offset())
            if messages:
                try:
                    consumer.commit(asynchronous=False)
                except confluent_kafka.KafkaException as error:
                    self.errors.append(str(error))
                else:
                    self._stored()
        consumer.close()


class OurMember(Member):
    name = "barnabas"

    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        settings = ConsumerSettings(
            bootstrap_servers=tuple(self.bootstrap.split(",")),
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with Consumer(settings) as consumer:
            await consumer.subscribe(self.topic)
            while not self._is_over.is_set():
                records = await consumer.poll(500, timeout_ms=100)
                for record in records:
                    self._note(record.partition, record.offset)
                if records:
                    try:
                        await consumer.commit()
                    except BarnabasError as error:
                        self.errors.append(str(error))
                    else:
                        self._stored()


class AiokafkaMember(Member):
    name = "aiokafka"

    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            while not self._is_over.is_set():
                batches = await consumer.getmany(timeout_ms=100, max_records=500)
                for record in [record for batch in batches.values() for record in batch]:
                    self._note(record.partition, record.offset)
                if batches:
                    try:
                        await consumer.commit()
                    except KafkaError as error:
                        self.errors.append(repr(error))
                    else:
                        self._stored()
        finally:
            await consumer.stop()


class JavaMember(Member):
    name = "java"

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._program = JavaProgram("ClusterMember", bootstrap, topic, group)
        super().__init__(bootstrap, topic, group)

    def _run(self) -> None:
        for kind, rest in self._program.lines():
            if kind == "R":
                partition, offset = map(int, rest.split())
                self._note(partition, offset)
            elif kind == "C":
                self._stored()
            else:
                (self.errors if kind == "X" else self.problems).append(rest)

    def stop(self) -> None:
        self._program.end()
        super().stop()


MEMBERS: dict[str, type[Member]] = {
    each.name: each for each in (LibrdkafkaMember, JavaMember, OurMember, AiokafkaMember)
}


def stored(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """What the group's coordinator says is committed, asked by somebody who is no member."""

    async def ask() -> dict[int, int]:
        settings = ConsumerSettings(bootstrap_servers=tuple(bootstrap.split(",")), group_id=group)
        async with Consumer(settings) as consumer:
            found = await consumer.committed([TopicPartition(topic, index) for index in range(partitions)])
            return {place.partition: entry.offset for place, entry in found.items() if entry is not None}

    return asyncio.run(ask())
