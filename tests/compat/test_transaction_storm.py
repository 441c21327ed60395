"""Transactions without a pause between them: the end of the next one arrives while the markers of the last are written.

Each round commits a record to each of many partitions, begins again, sends again and aborts at once. No client may be
fenced, and readers see what was committed and nothing else. ``BARNABAS_STORM_ROUNDS`` sets the number of rounds.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest
from java_client import compiled
from tools.kafka_jars import java_command

from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.ids import TopicPartition

CreateTopic = Callable[..., str]

ROUNDS = int(os.environ.get("BARNABAS_STORM_ROUNDS", "5"))
PARTITIONS = 50
SECONDS_MAX = 60 + 2 * ROUNDS


def kept(number: int) -> bytes:
    return b"kept %d" % number


def aborted(number: int) -> bytes:
    return b"aborted %d" % number


def storm_with_confluent(bootstrap: str, topic: str) -> None:
    import confluent_kafka

    fatal: list[object] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": topic,
            "linger.ms": 0,
            "log_level": 0,
            "error_cb": lambda error: fatal.append(error) if error.fatal() else None,
        }
    )

    def run(value: bytes, end: Callable[[float], None]) -> None:
        try:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(topic, value, partition=partition)
            end(SECONDS_MAX)
        except confluent_kafka.KafkaException as failure:
            # An abort drops records on their way, after which librdkafka may find a gap in its sequence numbers.
            if not failure.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(SECONDS_MAX)
            run(value, end)

    producer.init_transactions(SECONDS_MAX)
    for number in range(ROUNDS):
        run(kept(number), producer.commit_transaction)
        run(aborted(number), producer.abort_transaction)
    assert not fatal


def storm_with_ours(bootstrap: str, topic: str) -> None:
    async def storm() -> None:
        settings = ProducerSettings(bootstrap_servers=(bootstrap,), transactional_id=topic, linger_ms=0)
        async with asyncio.timeout(SECONDS_MAX), Producer(settings) as producer:
            for number in range(ROUNDS):
                for value, end in (
                    (kept(number), producer.commit_transaction),
                    (aborted(number), producer.abort_transaction),
                ):
                    await producer.begin_transaction()
                    for partition in range(PARTITIONS):
                        await producer.send_soon(topic, value, partition=partition)
                    await end()

    asyncio.run(storm())


def storm_with_java(bootstrap: str, topic: str) -> None:
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128M")
    words = (bootstrap, topic, str(PARTITIONS), topic, str(ROUNDS))
    command = java_command("TransactionStorm", *words, options=options, classes=str(compiled("TransactionStorm")))
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [str(ROUNDS)]


STORMS: dict[str, Callable[[str, str], None]] = {
    "confluent": storm_with_confluent,
    "barnabas": storm_with_ours,
    "java": storm_with_java,
}


def committed(bootstrap: str, topic: str) -> Counter[bytes | None]:
    async def read() -> Counter[bytes | None]:
        settings = ConsumerSettings(bootstrap_servers=(bootstrap,), isolation_level="read_committed")
        async with asyncio.timeout(SECONDS_MAX), Consumer(settings) as consumer:
            places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
            while True:
                await consumer.assign(places, until_end=True)
                found = Counter([record.value async for record in consumer])
                if found.total() >= PARTITIONS * ROUNDS:
                    return found  # the markers of the last transaction may take a moment

    return asyncio.run(read())


@pytest.mark.parametrize(
    "client", [pytest.param(name, marks=[pytest.mark.java] if name == "java" else []) for name in STORMS]
)
def test_no_producer_is_fenced_by_the_markers_of_its_own_last_transaction(
    broker_address: str, create_topic: CreateTopic, client: str
) -> None:
    topic = create_topic(partitions=PARTITIONS)
    STORMS[client](broker_address, topic)
    assert committed(broker_address, topic) == {kept(number): PARTITIONS for number in range(ROUNDS)}
