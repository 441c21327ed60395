"""Three brokers, any one of which dies, freezes or restarts under load: clients go on, and nothing is lost.

Idempotent producers with acks=all write to topics of three replicas, of which two must be in sync: librdkafka's at full
speed, or those of several clients side by side, with consumers, where a broker is restarted or frozen.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from bench.failover.judge import judge as judge_client
from bench.failover.load import ClientLoad
from bench.failover.run import until_whole as until_led_as_before
from cluster_members import MEMBERS
from cluster_roles import sets_of_clients, told
from confluent_kafka.admin import AdminClient, NewTopic
from counting import PARTITIONS, TOPIC, Load, judge

from barnabas.testing import Cluster

KILLS = int(os.environ.get("BARNABAS_CLUSTER_KILLS", "2"))
RESTARTS = int(os.environ.get("BARNABAS_CLUSTER_RESTARTS", "1"))  # of all three in turn
FREEZES = int(os.environ.get("BARNABAS_CLUSTER_FREEZES", "1"))
SEED = int(os.environ.get("BARNABAS_FREEZE_SEED", "20260101"))
BROKERS = (1, 2, 3)
FREEZE_TIMEOUT_MS = 5000  # a broker that is frozen keeps its connections open: clients give up on it after this
# It has one time-out for a request and for a record in it, so it waits until the frozen one answers.
PATIENT = "aiokafka"
WHOLE_SECONDS_MAX = 60


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    # Leaders go back when a test says so, so that it can see who has lost what.
    with Cluster(tmp_path / "cluster", settings={"auto.leader.rebalance.enable": "false"}) as cluster:
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


def admin_of(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def create(cluster: Cluster, topics: Sequence[str]) -> None:
    admin = admin_of(cluster)
    made = [NewTopic(topic, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for topic in topics]
    for future in admin.create_topics(made).values():
        future.result(30)


@contextmanager
def loads_of(cluster: Cluster, clients: Sequence[str], **options: int) -> Iterator[list[ClientLoad]]:
    """A producer of each client, each with its own topic; what they wrote is judged at the end."""
    create(cluster, [f"numbers-of-{client}" for client in clients])
    with ExitStack() as stack:
        loads = [
            stack.enter_context(ClientLoad(client, cluster.bootstrap_servers, **options))  # type: ignore[arg-type]
            for client in clients
        ]
        for load in loads:
            load.wait_since(time.monotonic_ns())
        yield loads
        for load in loads:
            load.stop()
        for load in loads:
            judge_client(load, cluster.bootstrap_servers)


def until_followed(cluster: Cluster, loads: Sequence[ClientLoad], number: int, *, in_sync: int) -> None:
    """As the others see it, a broker leads nothing of what is written, and so many replicas of it are in sync."""
    others = [f"{each.host}:{each.port}" for other, each in cluster.addresses.items() if other != number]
    deadline = time.monotonic() + WHOLE_SECONDS_MAX
    while True:
        # A new one each time knows of no other servers: one that was frozen tells what was true before.
        topics = AdminClient({"bootstrap.servers": ",".join(others)}).list_topics(timeout=30).topics
        parts = [part for load in loads for part in topics[load.topic].partitions.values()]
        if all(part.leader != number and len(part.isrs) == in_sync for part in parts):
            return
        assert time.monotonic() < deadline, [(part.id, part.leader, part.isrs) for part in parts]
        time.sleep(0.1)


def slowest_since(load: ClientLoad, mark_ns: int) -> float:
    """The longest that a record sent after the mark waited for its acknowledgement."""
    latest = [each for line in load.timeline for each in line if each.sent_ns >= mark_ns]
    return max(each.acknowledged_ns - each.sent_ns for each in latest) / 1e9


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


@pytest.mark.parametrize("clients", sets_of_clients())
def test_a_rolling_restart_is_seen_by_no_client(cluster: Cluster, clients: Sequence[str]) -> None:
    waits: dict[str, list[float]] = {client: [] for client in clients}
    waits_to_commit: dict[str, list[float]] = {client: [] for client in clients}
    admin, servers = admin_of(cluster), cluster.bootstrap_servers
    with loads_of(cluster, clients) as loads, ExitStack() as stack:
        members = [MEMBERS[load.client](servers, load.topic, f"group-of-{load.client}") for load in loads]
        for member in members:
            stack.callback(member.stop)
        for number in BROKERS * RESTARTS:
            until_led_as_before(admin)
            for each in (*loads, *members):
                each.wait_since(time.monotonic_ns())
            stopped_ns = time.monotonic_ns()
            for change in (cluster.stop, cluster.start):
                change(number)
                changed_ns = time.monotonic_ns()
                for member in members:
                    waits_to_commit[member.name].append(member.wait_since(changed_ns))
                for load in loads:
                    load.wait_since(changed_ns)
            for load in loads:
                waits[load.client].append(slowest_since(load, stopped_ns))
    seen = [f"{member.name}: {error}" for member in members for error in (*member.problems, *member.errors)]
    assert not seen, seen[:3]
    told("restart, slowest acknowledgement", waits)
    told("restart, next commit", waits_to_commit)


@pytest.mark.slow
@pytest.mark.parametrize("clients", sets_of_clients())
def test_a_leader_that_was_frozen_comes_back_as_a_follower(cluster: Cluster, clients: Sequence[str]) -> None:
    chance, admin = random.Random(SEED), admin_of(cluster)
    waits: dict[str, list[float]] = {client: [] for client in clients}
    with loads_of(cluster, clients, request_timeout_ms=FREEZE_TIMEOUT_MS) as loads:
        for _ in range(FREEZES):
            until_led_as_before(admin)  # so that each of the three leads something of everybody
            for load in loads:
                load.wait_since(time.monotonic_ns())
            time.sleep(chance.uniform(0, 0.5))
            number = chance.choice(BROKERS)
            frozen_ns = time.monotonic_ns()
            cluster.pause(number)
            try:
                for load in [load for load in loads if load.client != PATIENT]:
                    waits[load.client].append(load.wait_since(frozen_ns))
                until_followed(cluster, loads, number, in_sync=2)
            finally:
                cluster.resume(number)
            for load in [load for load in loads if load.client == PATIENT]:
                waits[load.client].append(load.wait_since(frozen_ns))
            until_followed(cluster, loads, number, in_sync=3)
        until_led_as_before(admin)
    told("frozen leader", waits)


def test_all_of_them_may_be_killed_at_once(cluster: Cluster, load: Load) -> None:
    until_whole(cluster)
    load.wait_for_progress()
    cluster.kill_all()
    cluster.start_all()
    load.wait_for_progress_everywhere()
    until_whole(cluster)
    load.stop()
    judge(load, cluster.bootstrap_servers)
