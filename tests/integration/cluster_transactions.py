"""Transactions that are numbered: each writes its number once to every partition, and must be seen whole or not at all.

Four clients, each in a thread: librdkafka's, Java's, aiokafka's and our own. ``is_committing`` is set while a commit is
under way, so that a test can kill its coordinator in the midst of it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import confluent_kafka
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.errors import ProducerFenced as FencedAiokafka
from committing import PATIENCE_SECONDS, Committing
from java_programs import JavaProgram

from barnabas import BarnabasError, Producer, ProducerSettings
from barnabas.client.errors import ProducerFenced

CALL_SECONDS_MAX = 60.0


class Transactor(Committing):
    """``committed`` and ``aborted`` are those whose end was acknowledged; the rest may be either."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.bootstrap, self.topic, self.partitions = bootstrap, topic, partitions
        self.transactional_id = f"transactor-{self.name}"
        self.begun = 0
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.is_committing = threading.Event()
        super().__init__()

    def _value(self) -> bytes:
        return b"%s %d" % (self.name.encode(), self.begun)

    def _done(self) -> None:
        self.committed.append(self.begun)
        self.committed_ns = time.monotonic_ns()


class LibrdkafkaTransactor(Transactor):
    name = "librdkafka"

    def _run(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.transactional_id,
                "linger.ms": 0,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )
        producer.init_transactions(CALL_SECONDS_MAX)
        while not self._is_over.is_set():
            self.begun += 1
            try:
                producer.begin_transaction()
                for partition in range(self.partitions):
                    producer.produce(self.topic, self._value(), partition=partition)
                self.is_committing.set()
                self._commit(producer)
            except confluent_kafka.KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    self.problems.append(str(error))
                    return
                producer.abort_transaction(CALL_SECONDS_MAX)
                self.aborted.append(self.begun)
            finally:
                self.is_committing.clear()

    def _commit(self, producer: confluent_kafka.Producer) -> None:
        while True:
            try:
                producer.commit_transaction(CALL_SECONDS_MAX)
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                self._done()
                return


class OurTransactor(Transactor):
    name = "barnabas"

    def _run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        settings = ProducerSettings(
            bootstrap_servers=tuple(self.bootstrap.split(",")), transactional_id=self.transactional_id, linger_ms=0
        )
        async with Producer(settings) as producer:
            while not self._is_over.is_set():
                self.begun += 1
                try:
                    async with producer.transaction():
                        for partition in range(self.partitions):
                            await producer.send_soon(self.topic, self._value(), partition=partition)
                        self.is_committing.set()
                except ProducerFenced as error:
                    self.problems.append(str(error))
                    return
                except BarnabasError:
                    continue  # aborted by leaving the block; the outcome is looked at by the reader
                else:
                    self._done()
                finally:
                    self.is_committing.clear()


class AiokafkaTransactor(Transactor):
    name = "aiokafka"

    def _run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, transactional_id=self.transactional_id, linger_ms=0
        )
        await producer.start()
        try:
            while not self._is_over.is_set():
                self.begun += 1
                try:
                    async with producer.transaction():
                        for partition in range(self.partitions):
                            await producer.send(self.topic, self._value(), partition=partition)
                        self.is_committing.set()
                except FencedAiokafka as error:
                    self.problems.append(repr(error))
                    return
                except KafkaError:
                    continue  # aborted by leaving the block; the outcome is looked at by the reader
                else:
                    self._done()
                finally:
                    self.is_committing.clear()
        finally:
            await producer.stop()


class JavaTransactor(Transactor):
    name = "java"

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        words = (bootstrap, topic, str(partitions), f"transactor-{self.name}")
        self._program = JavaProgram("ClusterTransactor", *words)
        super().__init__(bootstrap, topic, partitions)

    def _run(self) -> None:
        for kind, rest in self._program.lines():
            if kind == "B":
                self.begun = int(rest)
                self.is_committing.set()
                continue
            self.is_committing.clear()
            if kind == "C":
                self._done()
            elif kind == "A":
                self.aborted.append(int(rest))
            else:
                self.problems.append(rest)

    def stop(self) -> None:
        self._program.end()
        super().stop()


TRANSACTORS: dict[str, type[Transactor]] = {
    each.name: each for each in (LibrdkafkaTransactor, JavaTransactor, OurTransactor, AiokafkaTransactor)
}


def seen(bootstrap: str, topic: str, partitions: int) -> list[Counter[bytes]]:
    """What readers of committed records see, partition by partition; all of it, or the last stable offset hangs."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: list[Counter[bytes]] = []
    try:
        for partition in range(partitions):
            place = confluent_kafka.TopicPartition(topic, partition, 0)
            _, high = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            counted: Counter[bytes] = Counter()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                message = consumer.poll(1.0)
                assert time.monotonic() < deadline, f"{topic}-{partition} cannot be read to its end at {high}"
                if message is None:
                    continue
                if message.error() is None:
                    counted[message.value()] += 1
                elif message.offset() >= high:
                    break
            found.append(counted)
    finally:
        consumer.close()
    return found
