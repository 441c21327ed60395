"""How far groups are behind in a cluster where most partitions are not on the group's coordinator."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from watched_cluster import Watched

from barnabas.cli.main import main

HOUR_MS = 3_600_000
PARTITIONS = 6
SECONDS_MAX = 60.0
PREFIX = "kafka_consumergroup_"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("cluster"), {}) as running:
        yield running


def told(cluster: Watched, group: str, name: str) -> dict[int, float]:
    """One number of a group by partition, from the page of every broker."""
    found = {}
    for broker in cluster.nodes:
        for sample, value in cluster.numbers(broker).items():
            if sample.startswith(f'{PREFIX}{name}{{consumergroup="{group}"') and "partition=" in sample:
                index = int(re.findall(r'partition="(\d+)"', sample)[0])
                assert index not in found, "two brokers tell of one group"
                found[index] = value
    return found


def test_lag_is_told_of_every_partition_wherever_its_log_is(cluster: Watched, name: str) -> None:
    where = ["-b", cluster.bootstrap_servers]
    assert main(["topic", "create", name, "-p", str(PARTITIONS), "-r", "1", *where]) == 0
    settings: dict[str, object] = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 2}
    producer = Producer({**settings, "compression.type": "lz4"})
    now_ms = time.time_ns() // 1_000_000
    for hours in (5, 4, 3, 2):
        for index in range(PARTITIONS):
            producer.produce(name, b"v", partition=index, timestamp=now_ms - hours * HOUR_MS)
    assert producer.flush(20) == 0
    consumer = Consumer({**settings, "group.id": name})
    offsets = [0, 1, 2, 3, 4, 0]
    consumer.commit(
        offsets=[TopicPartition(name, index, offset) for index, offset in enumerate(offsets)], asynchronous=False
    )
    consumer.close()
    wanted = {
        "lag": dict(enumerate([4, 3, 2, 1, 0, 4])),
        "lag_seconds": dict(enumerate([10_800, 7_200, 3_600, 0, 0, 10_800])),
    }
    deadline = time.monotonic() + SECONDS_MAX
    while {family: told(cluster, name, family) for family in wanted} != wanted:
        assert time.monotonic() < deadline, {family: told(cluster, name, family) for family in wanted}
        time.sleep(0.1)
    waiting = told(cluster, name, "oldest_unread_seconds")
    assert [round(waiting[index] / 3600) for index in range(PARTITIONS)] == [5, 4, 3, 2, 0, 5]
