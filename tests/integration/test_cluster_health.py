"""What a cluster of three says of itself while a broker hangs and another one dies: numbers, and what doctors find."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import main
from barnabas.testing.cluster import Cluster
from barnabas.world.real import free_ports

SECONDS_MAX = 60.0
SAFE, ALONE = "safe", "alone"
MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
Samples = dict[str, float]


class Watched(Cluster):
    """Each broker has a page of numbers."""

    def __init__(self, directory: Path) -> None:
        settings = {"replica.lag.time.max.ms": "1000", "broker.session.timeout.ms": "20000"}
        super().__init__(directory, settings=settings)
        self.ports = dict(zip(self.nodes, free_ports("127.0.0.1", len(self.nodes)), strict=True))
        for number, port in self.ports.items():
            with (self.directory / f"broker-{number}" / "server.properties").open("a") as file:
                file.write(f"barnabas.http.port={port}\n")

    def numbers(self, broker: int) -> Samples:
        """Every sample of a page, by name and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[broker]}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def total(self, name: str, *brokers: int) -> float:
        return sum(self.numbers(broker).get(name, 0.0) for broker in brokers or self.nodes)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("cluster")) as running:
        where = ["-b", running.bootstrap_servers]
        assert main(["topic", "create", SAFE, "-p", "3", "-r", "3", "-c", "min.insync.replicas=2", *where]) == 0
        assert main(["topic", "create", ALONE, "-p", "3", "-r", "1", "-c", "min.insync.replicas=1", *where]) == 0
        assert main(["produce", SAFE, "-v", "x", *where]) == 0
        yield running


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def doctor(cluster: Cluster, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    code = main(["doctor", "-o", "json", "--seconds", "0.2", *words, "-b", cluster.bootstrap_servers])
    return code, json.loads(capsys.readouterr().out)["findings"]


def test_a_cluster_that_is_well(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {broker: cluster.numbers(broker) for broker in cluster.nodes}
    for page in pages.values():
        assert page["kafka_brokers"] == 3
        assert page[f"{CONTROLLER}offlinepartitionscount"] == 0
        assert page[f"{MANAGER}underreplicatedpartitions"] == 0
        assert page[f"{MANAGER}underminisrpartitioncount"] == 0
        assert page["process_open_fds"] > 0
        assert {'{listener="PLAINTEXT"}', '{listener="CONTROLLER"}'} == {
            name.removeprefix("kafka_server_socket_server_metrics_connection_count")
            for name in page
            if name.startswith("kafka_server_socket_server_metrics_connection_count")
        }
    assert sum(page[f"{CONTROLLER}activecontrollercount"] for page in pages.values()) == 1
    states = [name for page in pages.values() for name in page if "raftmetrics_current_state" in name]
    assert sorted(re.findall(r'"(\w+)"', " ".join(states))) == ["follower", "follower", "leader"]
    assert sum(page[f"{MANAGER}leadercount"] for page in pages.values()) == sum(
        page["kafka_controller_kafkacontroller_globalpartitioncount"] for page in pages.values()
    ) / len(pages)
    code, findings = doctor(cluster, capsys)
    assert code == 0, findings


def test_what_is_lost_if_broker_2_dies_now(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    code, findings = doctor(cluster, capsys, "--broker", "2")
    assert code == 0
    (lost,) = [each for each in findings if "lost" in each["what"] and each["about"] == "if broker 2 dies now"]
    assert lost["what"].startswith("1 partition cannot be read")
    assert re.search(rf"no other replica is in sync: {ALONE}-\d", lost["evidence"])
    assert f"barnabas reassign plan {ALONE} -r 3 -f plan.json" in lost["mend"]
    assert SAFE not in json.dumps(findings)


def test_a_leader_is_given_to_another_replica(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-b", cluster.bootstrap_servers]
    for broker in (1, 3):
        assert main(["leader", "transfer", f"{SAFE}-0", "--to", str(broker), *where]) == 0
        capsys.readouterr()
        assert main(["cluster", "metadata", SAFE, "-o", "json", *where]) == 0
        row = json.loads(capsys.readouterr().out)[0]
        assert (row["leader"], row["replicas"][0]) == (broker, broker)


def test_a_broker_that_hangs_is_seen_by_those_who_lead(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    active = next(
        broker for broker in cluster.nodes if cluster.numbers(broker)[f"{CONTROLLER}activecontrollercount"] == 1
    )
    hung = next(broker for broker in cluster.nodes if broker != active)
    others = [broker for broker in cluster.nodes if broker != hung]
    before = cluster.total(f"{MANAGER}isrshrinks_total", *others)
    where = ["-b", str(cluster.addresses[others[0]])]
    capsys.readouterr()
    assert main(["cluster", "metadata", SAFE, "-o", "json", *where]) == 0
    led = next(row["partition"] for row in json.loads(capsys.readouterr().out) if row["leader"] in others)
    cluster.pause(hung)
    try:
        # Only who lacks something can be too late; acks=all waits until the one that hangs counts no more.
        assert main(["produce", SAFE, "-p", str(led), "-v", "y", *where]) == 0
        until(lambda: cluster.total(f"{MANAGER}isrshrinks_total", *others) > before, "no leader has shrunk an ISR")
        until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions", *others) > 0, "nothing is under-replicated")
    finally:
        cluster.resume(hung)
    until(lambda: cluster.total(f"{MANAGER}isrexpands_total") > 0, "no leader has taken it back")
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions") == 0, "it does not catch up")
    until(lambda: cluster.total('kafka_server_replicafetchermanager_maxlag{clientid="Replica"}') == 0, "it lags")


def test_a_broker_that_dies_is_missed(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    dead = 2
    others = [broker for broker in cluster.nodes if broker != dead]
    cluster.kill(dead)
    until(lambda: all(cluster.numbers(one)[f"{CONTROLLER}offlinepartitionscount"] == 1 for one in others), "offline")
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions", *others) >= 3, "under-replicated")
    page = cluster.numbers(others[0])
    assert page["kafka_brokers"] == 2
    assert page[f"{CONTROLLER}fencedbrokercount"] == 1
    assert cluster.total(f"{CONTROLLER}activecontrollercount", *others) == 1
    assert cluster.total(f"{MANAGER}atminisrpartitioncount", *others) >= 3, "two of three are what safe asks for"
    code, findings = doctor(cluster, capsys)
    said = {(each["severity"], each["about"]): each for each in findings}
    assert code == 1
    assert "barnabas broker forget 2" in said["bad", "broker 2"]["mend"]
    leaderless = said["bad", "1 partition"]
    assert ALONE in leaderless["evidence"]
    assert leaderless["mend"].startswith("start broker 2")
    assert "one more of them dies" in said["warning", "the controllers"]["what"]
    assert any("would refuse producers with acks=all" in each["what"] for each in findings)
    assert main(["cluster", "health", "-b", cluster.bootstrap_servers]) == 1
    cluster.start(dead)
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions") == 0, "it does not come back")
    assert cluster.numbers(1)[f"{CONTROLLER}offlinepartitionscount"] == 0
