"""Three brokers, any one of which dies, freezes or restarts under load: clients go on, and nothing is lost.

The load is librdkafka's idempotent producer with acks=all on topics of three replicas, of which two must be in sync.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from counting import PARTITIONS, TOPIC, Load, judge

from barnabas.testing import Cluster

KILLS = int(os.environ.get("BARNABAS_CLUSTER_KILLS", "3"))
BROKERS = (1, 2, 3)
WHOLE_SECONDS_MAX = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster") as cluster:
        yield cluster


@pytest.fixture
def load(cluster: Cluster) -> Iterator[Load]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(30)
    load = Load(cluster.bootstrap_servers)
    load.start()
    yield load
    load.abandon()


def until_whole(cluster: Cluster) -> None:
    """Every replica of every partition is in sync: the next one may die."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    deadline = time.monotonic() + WHOLE_SECONDS_MAX
    while True:
        topics = admin.list_topics(timeout=10).topics
        partitions = [(name, part) for name, topic in topics.items() for part in topic.partitions.values()]
        short = [(name, part.id, part.leader, part.isrs) for name, part in partitions if len(part.isrs) < 3]
        if not short:
            return
        assert time.monotonic() < deadline, f"not in sync again: {short}"
        time.sleep(0.1)


def leader_of(cluster: Cluster, partition: int = 0) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    leader: int = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[partition].leader
    return leader


def test_any_broker_may_be_killed_at_any_moment(cluster: Cluster, load: Load) -> None:
    chance = random.Random(20260101)
    waits: list[float] = []
    for _ in range(KILLS):
        until_whole(cluster)
        load.wait_for_progress()
        time.sleep(chance.uniform(0, 0.3))
        number = chance.choice(BROKERS)
        cluster.kill(number)
        killed = time.monotonic()
        load.wait_for_progress_everywhere()
        waits.append(time.monotonic() - killed)
        cluster.start(number)
    until_whole(cluster)
    load.stop()
    judge(load, cluster.bootstrap_servers)
    print(
        f"{KILLS} kills, {load.sent} records acknowledged, none lost, doubled or out of order; every partition "
        f"acknowledged again after {statistics.median(waits):.2f} s (median), {max(waits):.2f} s (longest)"
    )


def test_a_rolling_restart_is_seen_by_no_client(cluster: Cluster, load: Load) -> None:
    for number in BROKERS:
        until_whole(cluster)
        load.wait_for_progress()
        cluster.stop(number)
        load.wait_for_progress()
        cluster.start(number)
    until_whole(cluster)
    load.stop()
    judge(load, cluster.bootstrap_servers)


def test_a_leader_that_was_frozen_comes_back_as_a_follower(cluster: Cluster, load: Load) -> None:
    until_whole(cluster)
    load.wait_for_progress()
    number = leader_of(cluster)
    cluster.pause(number)
    load.wait_for_progress_everywhere()
    cluster.resume(number)
    until_whole(cluster)
    load.stop()
    judge(load, cluster.bootstrap_servers)


def test_all_of_them_may_be_killed_at_once(cluster: Cluster, load: Load) -> None:
    until_whole(cluster)
    load.wait_for_progress()
    cluster.kill_all()
    cluster.start_all()
    load.wait_for_progress_everywhere()
    until_whole(cluster)
    load.stop()
    judge(load, cluster.bootstrap_servers)
