"""The clients of the compatibility tests, one small adapter each, all with the same face.

An adapter writes to partition 0 and reads it by assignment: no groups. It hides how a client is called, never what it
does: whatever differs between clients shows in the tests. `CLIENTS` is the list; what one of them cannot express is
said in its `missing`, with the reason.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import java_client
from records import ReadRecord, SentRecord

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DEADLINE_SECONDS = 30.0


class AtOffset(NamedTuple):
    offset: int


class AtTime(NamedTuple):
    timestamp_ms: int


Start = Literal["earliest"] | AtOffset | AtTime


class Unfinished(Exception):
    """The client did not write everything in time."""


class Client:
    """What every adapter can do."""

    name: ClassVar[str]

    def missing(self, *, codec: str = "none") -> str:
        """Why this client cannot be used with a codec; empty when it can."""
        return ""

    def can_write(self, record: SentRecord) -> bool:
        """Whether this client's own interface has a way to say such a record."""
        return True

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[SentRecord],
        *,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        """Writes the records to partition 0 and returns their offsets, as acknowledged."""
        raise NotImplementedError

    def consume(self, bootstrap: str, topic: str, *, count: int, start: Start = "earliest") -> list[ReadRecord]:
        """Reads `count` records of partition 0; fewer when they do not come in time."""
        raise NotImplementedError


class Confluent(Client):
    """confluent-kafka: librdkafka."""

    name = "confluent"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[SentRecord],
        *,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        from confluent_kafka import KafkaException, Producer

        offsets: dict[int, int] = {}
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 50,
                "log_level": 2,
            }
        )

        def note_offset(number: int) -> Callable[[Any, Any], None]:
            def delivered(error: Any, message: Any) -> None:
                if error is not None:
                    raise KafkaException(error)
                offsets[number] = message.offset()

            return delivered

        for number, one in enumerate(records):
            producer.produce(
                topic,
                value=one["value"],
                key=one["key"],
                partition=0,
                headers=list(one["headers"]),
                timestamp=one["timestamp"] or 0,
                on_delivery=note_offset(number),
            )
        if producer.flush(DEADLINE_SECONDS):
            raise Unfinished(f"librdkafka still holds {len(producer)} records")
        return [offsets[number] for number in range(len(records))]

    def consume(self, bootstrap: str, topic: str, *, count: int, start: Start = "earliest") -> list[ReadRecord]:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"unused-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "log_level": 2,
            }
        )
        try:
            where = TopicPartition(topic, 0, OFFSET_BEGINNING)
            if isinstance(start, AtOffset):
                where = TopicPartition(topic, 0, start.offset)
            elif isinstance(start, AtTime):
                asked = TopicPartition(topic, 0, start.timestamp_ms)
                (where,) = consumer.offsets_for_times([asked], timeout=DEADLINE_SECONDS)
            consumer.assign([where])
            found: list[ReadRecord] = []
            deadline = time.monotonic() + DEADLINE_SECONDS
            while len(found) < count and time.monotonic() < deadline:
                message: Any = consumer.poll(0.5)
                if message is None:
                    continue
                if message.error():
                    raise KafkaException(message.error())
                found.append(
                    {
                        "key": message.key(),
                        "value": message.value(),
                        "headers": list(message.headers() or []),
                        "offset": message.offset(),
                        "timestamp": message.timestamp()[1],
                    }
                )
            return found
        finally:
            consumer.close()


class KafkaPython(Client):
    """kafka-python, version 3."""

    name = "kafka-python"

    def missing(self, *, codec: str = "none") -> str:
        if codec == "snappy" and importlib.util.find_spec("snappy") is None:
            return "kafka-python reads snappy with python-snappy: pip install python-snappy"
        return ""

    def can_write(self, record: SentRecord) -> bool:
        return _python_can_write(record)

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[SentRecord],
        *,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=50,
        )
        try:
            sent = [
                producer.send(
                    topic,
                    value=one["value"],
                    key=one["key"],
                    headers=one["headers"],
                    partition=0,
                    timestamp_ms=one["timestamp"],
                )
                for one in records
            ]
            producer.flush(timeout=DEADLINE_SECONDS)
            return [future.get(timeout=DEADLINE_SECONDS).offset for future in sent]
        finally:
            producer.close(timeout=DEADLINE_SECONDS)

    def consume(self, bootstrap: str, topic: str, *, count: int, start: Start = "earliest") -> list[ReadRecord]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, check_crcs=True)
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            if isinstance(start, AtOffset):
                consumer.seek(partition, start.offset)
            elif isinstance(start, AtTime):
                found_offset = consumer.offsets_for_times({partition: start.timestamp_ms})[partition]
                consumer.seek(partition, found_offset.offset)
            else:
                consumer.seek_to_beginning(partition)
            found: list[ReadRecord] = []
            deadline = time.monotonic() + DEADLINE_SECONDS
            while len(found) < count and time.monotonic() < deadline:
                for messages in consumer.poll(timeout_ms=500).values():
                    found.extend(_from_python(message) for message in messages)
            return found[:count]
        finally:
            consumer.close()


class AioKafka(Client):
    """aiokafka; every call runs a loop of its own."""

    name = "aiokafka"

    def can_write(self, record: SentRecord) -> bool:
        return _python_can_write(record)

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[SentRecord],
        *,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        return asyncio.run(self._produce(bootstrap, topic, records, codec=codec, idempotent=idempotent))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[SentRecord], *, codec: str, idempotent: bool
    ) -> list[int]:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=50,
        )
        await producer.start()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                sent = [
                    await producer.send(
                        topic,
                        value=one["value"],
                        key=one["key"],
                        headers=one["headers"],
                        partition=0,
                        timestamp_ms=one["timestamp"],
                    )
                    for one in records
                ]
                await producer.flush()
                return [(await future).offset for future in sent]
        finally:
            await producer.stop()

    def consume(self, bootstrap: str, topic: str, *, count: int, start: Start = "earliest") -> list[ReadRecord]:
        return asyncio.run(self._consume(bootstrap, topic, count=count, start=start))

    async def _consume(self, bootstrap: str, topic: str, *, count: int, start: Start) -> list[ReadRecord]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, check_crcs=True
        )
        await consumer.start()
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            if isinstance(start, AtOffset):
                consumer.seek(partition, start.offset)
            elif isinstance(start, AtTime):
                found_offset = (await consumer.offsets_for_times({partition: start.timestamp_ms}))[partition]
                consumer.seek(partition, found_offset.offset)
            else:
                await consumer.seek_to_beginning(partition)
            found: list[ReadRecord] = []
            deadline = time.monotonic() + DEADLINE_SECONDS
            while len(found) < count and time.monotonic() < deadline:
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    found.extend(_from_python(message) for message in messages)
            return found[:count]
        finally:
            await consumer.stop()


def _python_can_write(record: SentRecord) -> bool:
    """kafka-python and aiokafka refuse a record with neither key nor value, and a header without a value."""
    has_something = record["key"] is not None or record["value"] is not None
    return has_something and all(value is not None for _, value in record["headers"])


def _from_python(message: Any) -> ReadRecord:
    """kafka-python and aiokafka share one ancestor, and the shape of its records."""
    return {
        "key": message.key,
        "value": message.value,
        "headers": [(name, value) for name, value in message.headers],
        "offset": message.offset,
        "timestamp": message.timestamp,
    }


class Java(Client):
    """Apache Kafka's own client."""

    name = "java"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[SentRecord],
        *,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        rows = java_client.produce(bootstrap, topic, records, codec, idempotent=idempotent)
        return [row["offset"] for row in rows]

    def consume(self, bootstrap: str, topic: str, *, count: int, start: Start = "earliest") -> list[ReadRecord]:
        match start:
            case AtOffset(offset):
                where = f"offset:{offset}"
            case AtTime(timestamp_ms):
                where = f"timestamp:{timestamp_ms}"
            case _:
                where = "earliest"
        return java_client.consume(bootstrap, topic, count, start=where)


CLIENTS: dict[str, Client] = {client.name: client for client in (Confluent(), KafkaPython(), AioKafka(), Java())}
