"""Any one of three brokers is killed under the producers of four clients at once: they go on, and nothing is lost.

What is measured at length, and beside Apache Kafka, is `python -m bench.failover`; this is a short run of the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.failover.run import failover, percentile

from barnabas.testing import Cluster

KILLS = int(os.environ.get("BARNABAS_CLIENT_KILLS", "1"))
SEED = int(os.environ.get("BARNABAS_CLIENT_SEED", "20260101"))


def run(directory: Path, clients: list[str]) -> None:
    with Cluster(directory) as cluster:
        waits = failover(cluster, clients, KILLS, seed=SEED)
    for client, seconds in waits.items():
        print(f"{client}: {KILLS} kills, {percentile(seconds, 0.5):.2f} s (median), {max(seconds):.2f} s (longest)")


def test_clients_in_python_go_on_when_a_broker_is_killed(tmp_path: Path) -> None:
    run(tmp_path / "cluster", ["librdkafka", "barnabas", "aiokafka"])


@pytest.mark.java
@pytest.mark.slow
def test_java_goes_on_when_a_broker_is_killed(tmp_path: Path) -> None:
    run(tmp_path / "cluster", ["java"])
