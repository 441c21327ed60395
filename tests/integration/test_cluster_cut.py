"""The network between three brokers is cut in half and healed: the larger half goes on, the smaller waits.

Every broker has a network namespace of its own, so that a cut is one: nothing arrives and no connection is closed. It
takes the rights of root; elsewhere this is skipped, and the simulated cluster has its cuts, one-way ones too.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.failover.judge import judge
from bench.failover.load import PARTITIONS, ClientLoad
from bench.failover.run import percentile
from cluster_hosts import HostedCluster, hosts_of, why_not
from cluster_roles import CLIENTS as NAMED_CLIENTS
from cluster_roles import active_controller
from confluent_kafka.admin import AdminClient, NewTopic
from test_cluster_kill import until_whole

CUTS = int(os.environ.get("BARNABAS_CLUSTER_CUTS", "1"))
SEED = int(os.environ.get("BARNABAS_CUT_SEED", "20260101"))
# On the host of each broker, and on a fourth that reaches both halves. Not aiokafka: it has one time-out for a request
# and for a record in it, and cannot give up on the one without the other.
_NAMED = [client for client in NAMED_CLIENTS if client != "aiokafka"] or ["librdkafka"]
CLIENTS = (*(_NAMED * 3)[:3], "librdkafka")
BROKERS = (1, 2, 3)
REQUEST_TIMEOUT_MS = 3000  # nobody is told of a cut: clients give up on a broker after this
UNDER_WAY_SECONDS = 1.0  # what was replicated before a cut may be acknowledged a little after it

_REASON = why_not()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(_REASON), reason=_REASON)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[HostedCluster]:
    with hosts_of(len(CLIENTS)) as hosts, HostedCluster(tmp_path / "cluster", hosts) as cluster:
        yield cluster


def test_a_network_cut_in_half_and_healed_loses_nothing(cluster: HostedCluster) -> None:
    chance, hosts, servers = random.Random(SEED), cluster.hosts, cluster.bootstrap_servers
    waits: list[float] = []  # of the clients in the larger half
    waits_of_both: list[float] = []  # of the one that reaches everybody, and is not told by whom it is led astray
    with ExitStack() as stack:
        loads = {}
        for number, client in zip(hosts.numbers, CLIENTS, strict=True):
            topic = f"numbers-from-{number}"
            create(servers, topic)
            load = ClientLoad(
                client, servers, topic=topic, request_timeout_ms=REQUEST_TIMEOUT_MS, before=hosts.inside(number, ())
            )
            loads[number] = stack.enter_context(load)
        for cut in range(CUTS):
            until_whole(cluster)
            for load in loads.values():
                load.wait_since(time.monotonic_ns())
            # The worst to be alone: the controller. Every second time it is anybody.
            alone = active_controller(servers) if cut % 2 == 0 else chance.choice(BROKERS)
            others = [each for each in BROKERS if each != alone]
            cut_ns = time.monotonic_ns()
            hosts.cut([alone], others)
            waits.append(max(loads[number].wait_since(cut_ns) for number in others))
            waits_of_both.append(loads[4].wait_since(cut_ns))
            healed_ns = time.monotonic_ns()
            hosts.heal([alone], others)
            loads[alone].wait_since(healed_ns)
            late = cut_ns + int(UNDER_WAY_SECONDS * 1e9)
            line = [each for part in loads[alone].timeline for each in part]
            wrong = [each for each in line if late < each.acknowledged_ns < healed_ns]
            assert not wrong, f"acknowledged by a broker that was alone: {wrong[:3]}"
        until_whole(cluster)
        for load in loads.values():
            load.stop()
        for load in loads.values():
            judge(load, servers)
    print(
        f"{CUTS} cuts: clients of the larger half went on after {percentile(waits, 0.5):.2f} s (median),"
        f" {max(waits):.2f} s (longest); one that reaches both after {percentile(waits_of_both, 0.5):.2f} s,"
        f" {max(waits_of_both):.2f} s"
    )


def create(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3, config={"min.insync.replicas": "2"})])[topic].result(30)
