"""Whoever plays a part in a cluster may be killed: the controller, two of five, a coordinator.

A few kills each; `make cluster-kill` is the run in full. Producers, consumers and transactions go on by themselves, and
nothing that was acknowledged, committed or stored is lost.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.failover.load import ClientLoad
from bench.failover.run import failover, until_whole
from cluster_members import MEMBERS, stored
from cluster_roles import CLIENTS, active_controller, group_coordinator, told, transaction_coordinator, voters
from cluster_transactions import TRANSACTORS, seen
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Cluster

KILLS = int(os.environ.get("BARNABAS_ROLE_KILLS", "1"))
SEED = int(os.environ.get("BARNABAS_ROLE_SEED", "20260101"))
PARTITIONS = 3
SETTINGS = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", settings=SETTINGS) as cluster:
        yield cluster


def admin_of(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def create(cluster: Cluster, topic: str, replicas: int = 3) -> None:
    made = NewTopic(topic, PARTITIONS, replicas, config={"min.insync.replicas": "2"})
    admin = admin_of(cluster)
    admin.create_topics([made])[topic].result(30)


@pytest.mark.slow
def test_the_controller_may_be_killed(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    waits = failover(cluster, CLIENTS, KILLS, seed=SEED, victims=lambda _: [active_controller(servers)])
    told("controller", waits)


@pytest.mark.slow
def test_two_of_five_controllers_may_be_killed_at_once(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", brokers=5, controllers=5) as cluster:
        servers = cluster.bootstrap_servers
        assert voters(servers) == [1, 2, 3, 4, 5]

        def pair(chance: random.Random) -> list[int]:
            first = active_controller(servers)
            return [first, chance.choice([number for number in cluster.nodes if number != first])]

        waits = failover(cluster, CLIENTS, KILLS, seed=SEED, victims=pair, replicas=5)
        create(cluster, "afterwards", replicas=5)
    told("two of five controllers", waits)


@pytest.mark.slow
def test_a_group_coordinator_may_be_killed_and_no_committed_offset_is_lost(cluster: Cluster) -> None:
    chance, servers = random.Random(SEED), cluster.bootstrap_servers
    create(cluster, "numbers-of-librdkafka")
    waits: dict[str, list[float]] = {client: [] for client in CLIENTS}
    with ClientLoad("librdkafka", servers) as load:
        load.wait_since(time.monotonic_ns())
        members = [MEMBERS[client](servers, load.topic, f"group-of-{client}") for client in CLIENTS]
        try:
            for kill in range(KILLS):
                until_whole(admin_of(cluster))
                for member in members:
                    member.wait_since(time.monotonic_ns())
                number = group_coordinator(servers, members[kill % len(members)].group)
                time.sleep(chance.uniform(0, 0.3))
                killed_ns = time.monotonic_ns()
                before = [dict(member.committed) for member in members]
                cluster.kill(number)
                for member, committed in zip(members, before, strict=True):
                    now = stored(servers, member.group, load.topic, PARTITIONS)
                    assert all(now[partition] >= offset for partition, offset in committed.items()), (committed, now)
                    waits[member.name].append(member.wait_since(killed_ns))
                cluster.start(number)
        finally:
            for member in members:
                member.stop()
    assert not [problem for member in members for problem in member.problems]
    told("group coordinator", waits)


@pytest.mark.slow
def test_a_transaction_coordinator_may_be_killed_in_the_midst_of_a_commit(cluster: Cluster) -> None:
    chance, servers = random.Random(SEED), cluster.bootstrap_servers
    create(cluster, "numbered")
    waits: dict[str, list[float]] = {client: [] for client in CLIENTS}
    transactors = [TRANSACTORS[client](servers, "numbered", PARTITIONS) for client in CLIENTS]
    try:
        for kill in range(KILLS):
            until_whole(admin_of(cluster))
            for each in transactors:
                each.wait_since(time.monotonic_ns())
            target = transactors[kill % len(transactors)]
            number = transaction_coordinator(servers, target.transactional_id)
            assert target.is_committing.wait(30)
            time.sleep(chance.uniform(0, 0.01))
            killed_ns = time.monotonic_ns()
            cluster.kill(number)
            for each in transactors:
                waits[each.name].append(each.wait_since(killed_ns))
            cluster.start(number)
    finally:
        for each in transactors:
            each.stop()
    assert not [problem for each in transactors for problem in each.problems]
    found = seen(servers, "numbered", PARTITIONS)
    for each in transactors:
        prefix = each.name.encode()
        expected = {b"%s %d" % (prefix, number) for number in each.committed}
        refused = {b"%s %d" % (prefix, number) for number in each.aborted}
        for counted in found:
            mine = {value: count for value, count in counted.items() if value.startswith(prefix + b" ")}
            assert set(mine.values()) == {1}, "a transaction is seen twice"
            assert expected <= set(mine), "a transaction that was committed is not seen"
            assert not refused & set(mine), "a transaction that was aborted is seen"
            assert set(mine) == {value for value in found[0] if value.startswith(prefix + b" ")}, "seen in part"
    told("transaction coordinator", waits)
