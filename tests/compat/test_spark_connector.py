"""Spark's own Kafka connector (``spark-sql-kafka-0-10``, from Maven) against our broker: batch and streaming."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.java, pytest.mark.slow]

ROWS = 1000
SPARK_SECONDS_MAX = 400


def _transactions(servers: str, topic: str) -> None:
    """Ten records that were committed and five that were aborted, by librdkafka."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "log_level": 2})
    producer.init_transactions()
    for count, is_kept in ((10, True), (5, False)):
        producer.begin_transaction()
        for number in range(count):
            producer.produce(topic, value=str(number))
        producer.flush()
        producer.commit_transaction() if is_kept else producer.abort_transaction()


def _values(servers: str, topic: str) -> list[int]:
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({"bootstrap.servers": servers, "group.id": topic, "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, index, 0) for index in range(3)])
    found: list[int] = []
    ended: set[int] = set()
    while len(ended) < 3:
        for message in reader.consume(1000, timeout=1):
            if message.error() is None:
                found.append(int(message.value()))
            else:
                ended.add(message.partition())
    reader.close()
    return sorted(found)


def test_spark_s_own_connector_reads_writes_and_streams(
    broker_address: str, create_topic: Callable[..., str], tmp_path: Path
) -> None:
    from bench.spark.jars import connector_jars
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    source, target = create_topic(partitions=3), create_topic(partitions=3)
    admin = AdminClient({"bootstrap.servers": broker_address, "log_level": 2})
    admin.create_topics([NewTopic(f"{source}-transactions", 1, 1)])[f"{source}-transactions"].result(20)
    _transactions(broker_address, f"{source}-transactions")
    program = [sys.executable, str(Path(__file__).with_name("spark_connector.py"))]
    done = subprocess.run(
        [*program, broker_address, source, target, str(tmp_path)],
        env=os.environ | {"SPARK_KAFKA_JARS": ",".join(map(str, connector_jars()))},
        stdout=subprocess.PIPE,
        text=True,
        timeout=SPARK_SECONDS_MAX,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["batch"] == {
        "rows": ROWS,
        "sum": sum(range(ROWS)),
        "headers": ROWS,
        "part": 10,
        "by pattern": ROWS,
        "of all times": ROWS,
        "cut": told["batch"]["cut"],
    }
    assert told["batch"]["cut"] >= 6
    assert told["transactions"] == {"read_committed": 10, "read_uncommitted": 15}
    assert told["stream"] == {"first": ROWS, "second": ROWS}
    assert _values(broker_address, target) == list(range(2 * ROWS))
