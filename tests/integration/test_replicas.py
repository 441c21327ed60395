"""Three brokers as processes: replicas hold the same bytes, and a consumer reads from the replica in its rack."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Cluster

TOPIC = "t"
SECONDS_MAX = 60


def create(cluster: Cluster, **config: str) -> int:
    """A topic of one partition with three replicas; who leads it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(TOPIC, 1, 3, config={name.replace("_", "."): value for name, value in config.items()})
    admin.create_topics([topic])[TOPIC].result(30)
    leader: int = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0].leader
    return leader


def produce(cluster: Cluster, count: int, **settings: str | int) -> list[KafkaError | None]:
    failures: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **settings})
    for number in range(count):
        producer.produce(
            TOPIC, f"{number}".encode() * 20, partition=0, on_delivery=lambda error, _: failures.append(error)
        )
    producer.flush(SECONDS_MAX)
    return failures


def test_all_replicas_hold_the_same_bytes(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        create(cluster, min_insync_replicas="2")
        for codec in ("none", "lz4", "zstd"):
            assert produce(cluster, 500, **{"compression.type": codec}) == [None] * 500
        cluster.stop_all()
    logs = sorted((tmp_path / "cluster").rglob(f"{TOPIC}-0/*.log"))
    assert len(logs) == 3
    contents = {path.read_bytes() for path in logs}
    assert len(contents) == 1
    assert len(contents.pop()) > 10_000


def test_too_few_replicas_refuse_and_take_writes_again_when_they_are_back(tmp_path: Path) -> None:
    settings = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with Cluster(tmp_path / "cluster", settings=settings) as cluster:
        leader = create(cluster, min_insync_replicas="3")
        assert produce(cluster, 10) == [None] * 10
        follower = next(number for number in (1, 2, 3) if number != leader)
        cluster.kill(follower)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            (failure,) = produce(
                cluster, 1, **{"retries": 0, "enable.idempotence": "false", "message.timeout.ms": 5000}
            )
            if failure is not None and failure.code() == KafkaError.NOT_ENOUGH_REPLICAS:
                break
            assert time.monotonic() < deadline, failure
        cluster.start(follower)
        assert produce(cluster, 10, **{"message.timeout.ms": 60_000}) == [None] * 10


def test_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    settings = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    cluster = Cluster(tmp_path / "cluster", settings=settings)
    for number, path in cluster._configs.items():
        path.write_text(f"{path.read_text()}\nbroker.rack=rack-{number}\n")
    with cluster:
        leader = create(cluster)
        assert produce(cluster, 100) == [None] * 100
        nearest = next(number for number in (1, 2, 3) if number != leader)
        fetched_from: set[int] = set()

        def on_statistics(text: str) -> None:
            for topic in json.loads(text)["topics"].values():
                fetched_from.update(part["broker"] for name, part in topic["partitions"].items() if name == "0")

        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "g",
                "client.rack": f"rack-{nearest}",
                "statistics.interval.ms": 100,
                "stats_cb": on_statistics,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        count = 0
        deadline = time.monotonic() + SECONDS_MAX
        while count < 100 or nearest not in fetched_from:
            message = consumer.poll(0.2)
            if message is not None:
                if message.error() is not None:
                    raise KafkaException(message.error())
                count += 1
            if time.monotonic() > deadline:
                pytest.fail(f"{count} records, fetched from {fetched_from}, leader {leader}, nearest {nearest}")
        consumer.close()
        assert count == 100
