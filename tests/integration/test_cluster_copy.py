"""Exactly once across a cluster: records are copied in transactions while brokers and copiers are killed, and counted.

The copiers are our own client's, in a group of either protocol; what is committed is counted by librdkafka. `make
cluster-copy` is the run in full: 100,000 records and 60 kills for each protocol.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_copying import Copier
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from onlooking import Onlooker
from test_cluster_kill import until_whole

from barnabas.testing import Cluster

RECORDS = int(os.environ.get("BARNABAS_COPY_RECORDS", "2000"))
KILLS = int(os.environ.get("BARNABAS_COPY_KILLS", "2"))
SEED = int(os.environ.get("BARNABAS_COPY_SEED", "20260101"))
PARTITIONS = 4
COPIERS = 2
STALL_SECONDS_MAX = 120
FROZEN_SECONDS = 5  # longer than a session, so that others have its partitions when it wakes
SOURCE, TARGET = "source", "target"
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


def fill(bootstrap: str) -> Counter[bytes]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topics = [NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for name in (SOURCE, TARGET)]
    for name, future in admin.create_topics(topics).items():
        assert future.result(30) is None, name
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return Counter(b"%d" % number for number in range(RECORDS))


class Run:
    """Copiers, an onlooker and what happens to them."""

    def __init__(self, cluster: Cluster, protocol: str) -> None:
        self.cluster = cluster
        self.chance = random.Random(f"{SEED}/{protocol}")
        servers = cluster.bootstrap_servers
        self.onlooker = Onlooker(servers, TARGET, PARTITIONS)
        self.copiers = [Copier(number, servers, SOURCE, TARGET, "copiers", protocol) for number in range(COPIERS)]
        self.done: Counter[str] = Counter()
        self.longest = 0.0

    def until(self, is_reached: Callable[[], bool], what: str) -> None:
        started = last = time.monotonic()
        before = -1
        while not is_reached():
            now, seen = time.monotonic(), self.onlooker.seen.total()
            if seen != before:
                before, last = seen, now
            assert not self.onlooker.failure, self.onlooker.failure
            assert now - last < STALL_SECONDS_MAX, f"{seen} records are seen, and no more: {what}"
            time.sleep(0.02)
        self.longest = max(self.longest, time.monotonic() - started)

    def until_more(self, what: str) -> None:
        seen = self.onlooker.seen.total()
        self.until(lambda: self.onlooker.seen.total() > seen or seen >= RECORDS, what)

    def disturb(self, number: int) -> None:
        """A broker, a copier, both at once, all copiers; or a copier is frozen until it is a zombie."""
        kind = ("broker", "copier", "both", "copiers", "zombie")[number % 5]
        self.done[kind] += 1
        time.sleep(self.chance.uniform(0, 0.3))
        copier = self.chance.choice(self.copiers)
        if kind in ("broker", "both"):
            until_whole(self.cluster)
            broker = self.chance.choice(sorted(self.cluster.nodes))
            self.cluster.kill(broker)
            if kind == "both":
                copier.signal(signal.SIGKILL)
            self.until_more(f"broker {broker} is dead")
            self.cluster.start(broker)
        elif kind == "copier":
            copier.signal(signal.SIGKILL)
        elif kind == "copiers":
            for each in self.copiers:
                each.signal(signal.SIGKILL)
        else:
            copier.signal(signal.SIGSTOP)
            time.sleep(FROZEN_SECONDS)
            copier.signal(signal.SIGCONT)

    def stop(self) -> None:
        for copier in self.copiers:
            copier.stop()
        self.onlooker.stop()


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.slow), "consumer"])
def test_every_record_is_copied_once_whoever_is_killed(tmp_path: Path, protocol: str) -> None:
    with Cluster(tmp_path / "cluster", settings=SETTINGS) as cluster:
        written = fill(cluster.bootstrap_servers)
        started = time.monotonic()
        run = Run(cluster, protocol)
        try:
            for number in range(KILLS):
                bound = RECORDS * number // KILLS
                run.until(lambda bound=bound: run.onlooker.seen.total() >= bound, f"{bound} are copied")  # type: ignore[misc]
                run.disturb(number)
            run.until(lambda: run.onlooker.seen.total() >= RECORDS, "the end")
        finally:
            run.stop()
        judge = Onlooker(cluster.bootstrap_servers, TARGET, PARTITIONS)
        try:
            deadline = time.monotonic() + 60
            while judge.seen.total() < RECORDS and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            judge.stop()
    assert not [each for copier in run.copiers for each in copier.unexpected]
    assert run.onlooker.seen == written
    assert judge.seen == written
    began_anew = sum((copier.restarts for copier in run.copiers), Counter[str]())
    print(
        f"{protocol}: {RECORDS} records copied once each in {time.monotonic() - started:.0f} s, under"
        f" {sum(run.done.values())} disturbances {dict(run.done)}; processes started"
        f" {sum(copier.starts for copier in run.copiers)} times, began anew {dict(began_anew)};"
        f" longest wait {run.longest:.1f} s"
    )
