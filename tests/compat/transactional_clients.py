"""Transactional producers and read_committed readers of the clients, one small adapter each, all with the same face.

A session is one producer with one transactional id; it sends single values and waits for each. What a client calls the
error that shuts it out is in its `fenced`. `WRITERS` and `READERS` are the lists.
"""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

SECONDS_MAX = 20.0
TIMEOUT_MS = 60_000


class Fenced(Exception):
    """The client has found out that it must not go on under its transactional id."""


class Session:
    """One transactional producer."""

    name: ClassVar[str]

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        raise NotImplementedError

    def init(self) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        raise NotImplementedError

    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Returns when it is acknowledged; Fenced if this producer is shut out."""
        raise NotImplementedError

    def send_offset(self, topic: str, partition: int, offset: int, group: str) -> None:
        raise NotImplementedError

    def commit(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Without a word to the broker about an open transaction, where the client allows that."""


class Confluent(Session):
    name = "confluent"

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        from confluent_kafka import Producer

        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
                # Without somebody to tell, a fatal error is raised out of whatever call comes next, mangled.
                "error_cb": lambda _: None,
            }
        )

    def _call(self, call: Callable[..., Any], *arguments: Any) -> None:
        from confluent_kafka import KafkaException

        try:
            call(*arguments)
        except (KafkaException, SystemError) as error:
            # A fatal error may come while a callback runs; then the interpreter finds it set and wraps it.
            cause = error if isinstance(error, KafkaException) else error.__cause__ or error.__context__
            fenced = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
            if isinstance(cause, KafkaException) and cause.args[0].name() in fenced:
                raise Fenced(str(cause)) from error
            raise

    def init(self) -> None:
        self._call(self._producer.init_transactions, SECONDS_MAX)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        from confluent_kafka import KafkaException

        failed: list[Any] = []
        self._call(
            lambda: self._producer.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: failed.append(error) if error else None
            )
        )
        self._call(self._producer.flush, SECONDS_MAX)
        for error in failed:
            self._call(_raise, KafkaException(error))

    def send_offset(self, topic: str, partition: int, offset: int, group: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
        try:
            self._call(
                self._producer.send_offsets_to_transaction,
                [TopicPartition(topic, partition, offset)],
                consumer.consumer_group_metadata(),
                SECONDS_MAX,
            )
        finally:
            consumer.close()

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, SECONDS_MAX)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, SECONDS_MAX)


def _raise(error: Exception) -> None:
    raise error


class KafkaPython(Session):
    name = "kafka-python"

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=int(SECONDS_MAX * 1000),
        )

    def _call(self, call: Callable[..., Any], *arguments: Any) -> None:
        from kafka.errors import InvalidProducerEpochError, ProducerFencedError

        try:
            call(*arguments)
        except (ProducerFencedError, InvalidProducerEpochError) as error:
            raise Fenced(str(error)) from error

    def init(self) -> None:
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._call(lambda: self._producer.send(topic, value, partition=partition).get(SECONDS_MAX))

    def send_offset(self, topic: str, partition: int, offset: int, group: str) -> None:
        from kafka import OffsetAndMetadata, TopicPartition
        from kafka.structs import ConsumerGroupMetadata

        offsets = {TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)}
        self._call(self._producer.send_offsets_to_transaction, offsets, ConsumerGroupMetadata(group, -1, "", None))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=0)


class AioKafka(Session):
    name = "aiokafka"

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        self._runner = asyncio.Runner()
        self._arguments = {
            "bootstrap_servers": bootstrap,
            "transactional_id": transactional_id,
            "transaction_timeout_ms": timeout_ms,
        }
        self._producer: Any = None

    def _run(self, call: Callable[[], Any]) -> None:
        from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

        async def run() -> Any:
            async with asyncio.timeout(SECONDS_MAX):
                return await call()

        try:
            self._runner.run(run())
        except (ProducerFenced, InvalidProducerEpoch) as error:
            raise Fenced(str(error)) from error
        except KafkaError as error:
            # Once shut out, its sender only says that it has failed, and why.
            if isinstance(error.__cause__, ProducerFenced) or "ProducerFenced" in repr(error):
                raise Fenced(str(error)) from error
            raise

    def init(self) -> None:
        from aiokafka import AIOKafkaProducer

        async def start() -> None:
            self._producer = AIOKafkaProducer(**self._arguments)
            await self._producer.start()

        self._run(start)

    def begin(self) -> None:
        self._run(lambda: self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._run(lambda: self._producer.send_and_wait(topic, value, partition=partition))

    def send_offset(self, topic: str, partition: int, offset: int, group: str) -> None:
        from aiokafka import TopicPartition

        offsets = {TopicPartition(topic, partition): offset}
        self._run(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._run(lambda: self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(lambda: self._producer.abort_transaction())

    def close(self) -> None:
        async def stop() -> None:
            # Its own stop waits for an open transaction; a producer that dies does not.
            if self._producer is not None:
                await self._producer._sender.close()
                await self._producer.client.close()
                self._producer._closed = True

        self._runner.run(stop())
        self._runner.close()


class Java(Session):
    """Apache Kafka's own producer: the only one here that speaks version 2 of transactions."""

    name = "java"
    source: ClassVar = Path(__file__).parent / "java" / "Transactions.java"

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> None:
        options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128M")
        arguments = (bootstrap, transactional_id, str(timeout_ms))
        command = java_command("Transactions", *arguments, options=options, classes=str(self._classes()))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    @classmethod
    def _classes(cls) -> Path:
        directory = cache_directory("java", hashlib.sha256(cls.source.read_bytes()).hexdigest()[:16])
        with locked("java-transactions"):
            if not (directory / "Transactions.class").exists():
                command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(cls.source)]
                subprocess.run(command, check=True, timeout=120)
        return directory

    def say(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if answer.startswith("error"):
            if "ProducerFenced" in answer or "InvalidProducerEpoch" in answer:
                raise Fenced(answer)
            raise RuntimeError(answer)
        return answer

    def init(self) -> None:
        self.say("init")

    def begin(self) -> None:
        self.say("begin")

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self.say("send", topic, partition, value.decode())

    def send_offset(self, topic: str, partition: int, offset: int, group: str) -> None:
        self.say("offset", topic, partition, offset, group)

    def commit(self) -> None:
        self.say("commit")

    def abort(self) -> None:
        self.say("abort")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


# --- readers: what a read_committed consumer sees of a partition, up to a last value ---------------------------------


def _read_with_confluent(bootstrap: str, topic: str, partition: int, last: bytes) -> list[bytes]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"unused-{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        deadline = time.monotonic() + SECONDS_MAX
        while last not in found and time.monotonic() < deadline:
            for message in consumer.consume(100, timeout=0.5):
                if message.error():
                    raise KafkaException(message.error())
                found.append(message.value() or b"")
    finally:
        consumer.close()
    return found


def _read_with_kafka_python(bootstrap: str, topic: str, partition: int, last: bytes) -> list[bytes]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed")
    found: list[bytes] = []
    try:
        where = TopicPartition(topic, partition)
        consumer.assign([where])
        consumer.seek_to_beginning(where)
        deadline = time.monotonic() + SECONDS_MAX
        while last not in found and time.monotonic() < deadline:
            for messages in consumer.poll(timeout_ms=500).values():
                found += [message.value for message in messages]
    finally:
        consumer.close()
    return found


def _read_with_aiokafka(bootstrap: str, topic: str, partition: int, last: bytes) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read() -> list[bytes]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed")
        await consumer.start()
        found: list[bytes] = []
        try:
            where = TopicPartition(topic, partition)
            consumer.assign([where])
            await consumer.seek_to_beginning(where)
            deadline = time.monotonic() + SECONDS_MAX
            while last not in found and time.monotonic() < deadline:
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    found += [message.value or b"" for message in messages]
        finally:
            await consumer.stop()
        return found

    return asyncio.run(read())


def _read_with_java(bootstrap: str, topic: str, partition: int, last: bytes) -> list[bytes]:
    session = Java(bootstrap, f"reader-of-{topic}")
    try:
        return [value.encode() for value in session.say("read", topic, partition, last.decode()).split()]
    finally:
        session.close()


WRITERS: dict[str, type[Session]] = {each.name: each for each in (Confluent, KafkaPython, AioKafka, Java)}
READERS: dict[str, Callable[[str, str, int, bytes], list[bytes]]] = {
    "confluent": _read_with_confluent,
    "kafka-python": _read_with_kafka_python,
    "aiokafka": _read_with_aiokafka,
    "java": _read_with_java,
}
